"""The one primitive: log-sum-exp kernel sums."""
