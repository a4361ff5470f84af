"""The page of two views: one HTML file without network, made from the record of the experiment ``two_views``."""
