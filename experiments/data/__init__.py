"""Real input: the token states of a dozen sentences in a real encoder, layer by layer, and how they were attended to.

`real_tokens.npz` is made by ``python -m experiments.data.make_real_tokens`` from `sentences.txt` with the MiniLM
encoder of `meanfield.pretrained.minilm`. Its arrays, with N tokens in all, d = 384, 6 layers of 12 heads:

========== ============== =========================================================================
states     (7, N, d)      float32: after the embedding (row 0) and after each layer; [CLS] and [SEP] are kept
entropies  (6, 12, N)     float32: attention entropy of each token in each head, in nats
gains      (7, d)         float32: gain and bias of the LayerNorm that the states have just passed through
biases     (7, d)
tokens     (N,)           strings, word pieces start with ##
starts     (S + 1,)       sentence i owns tokens starts[i] to starts[i + 1]
sentences  (S,)           strings
source     ()             string: where the weights came from
========== ============== =========================================================================
"""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
REAL_TOKENS = FOLDER / "real_tokens.npz"


def load_real_tokens():
    """The sentences with their token strings and their token states at every depth.

    Returns
    -------
    list of (sentence, tokens, states)
        The text, a list of n strings from "[CLS]" to "[SEP]", and a list of 7 float64 arrays of shape (n, 384): after
        the embedding and after each of the six layers. Give ``states`` to `Trajectory.from_hidden_states`.
    """
    with np.load(REAL_TOKENS) as data:
        states, tokens = data["states"].astype(np.float64), data["tokens"]
        return [
            (str(sentence), [str(token) for token in tokens[start:end]], list(states[:, start:end]))
            for sentence, start, end in _spans(data)
        ]


def load_attention_entropies():
    """The attention entropy of every token in every head of the real layers, in nats.

    Returns
    -------
    list of ndarray, each of shape (6, 12, n)
        One array a sentence, in the order of `load_real_tokens`; entry (k, h, i) is -sum_j P_ij log P_ij of head h in
        the layer that takes state k to state k + 1. It lies between 0 and log n.
    """
    with np.load(REAL_TOKENS) as data:
        entropies = data["entropies"].astype(np.float64)
        return [entropies[:, :, start:end] for _, start, end in _spans(data)]


def _spans(data):
    return zip(data["sentences"], data["starts"][:-1], data["starts"][1:], strict=True)
