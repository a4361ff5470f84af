"""Make `real_tokens.npz` from `sentences.txt`: run ``python -m experiments.data.make_real_tokens``."""

import sys

import numpy as np
from scipy.special import xlogy

from meanfield.pretrained.minilm import PACKAGE, VERSION, ModelNotInstalledError, load_minilm

from . import FOLDER, REAL_TOKENS


def read_sentences():
    """The sentences, one a line."""
    return (FOLDER / "sentences.txt").read_text(encoding="utf-8").splitlines()


def make_arrays(model, sentences):
    """The arrays of the file, named as the docstring of `experiments.data` says; computed in float64, kept in float32.

    Parameters
    ----------
    model : MiniLM
    sentences : list of str

    Returns
    -------
    dict of ndarray
    """
    states, entropies, tokens, starts = [], [], [], [0]
    for sentence in sentences:
        ids, pieces = model.encode(sentence)
        hidden = model.hidden_states(ids)
        attention = np.stack([layer.attention(x) for layer, x in zip(model.layers, hidden[:-1], strict=True)])
        states.append(hidden)
        entropies.append(-xlogy(attention, attention).sum(axis=-1))
        tokens += pieces
        starts.append(len(tokens))
    norms = [model.embedding_norm, *(layer.output_norm for layer in model.layers)]
    return {
        "states": np.concatenate(states, axis=1).astype(np.float32),
        "entropies": np.concatenate(entropies, axis=2).astype(np.float32),
        "gains": np.stack([norm.gain for norm in norms]).astype(np.float32),
        "biases": np.stack([norm.bias for norm in norms]).astype(np.float32),
        "tokens": np.array(tokens),
        "starts": np.array(starts, dtype=np.int64),
        "sentences": np.array(sentences),
        "source": np.array(f"{PACKAGE} {VERSION}"),
    }


def write(path, arrays):
    """Write the arrays; numpy dates every member 1980, so the same arrays give the same bytes."""
    np.savez(path, allow_pickle=False, **arrays)


def main():
    """Make the file again; 0, or 1 with one line that says what is missing."""
    try:
        model = load_minilm()
    except ModelNotInstalledError as error:
        print(error, file=sys.stderr)
        return 1
    write(REAL_TOKENS, make_arrays(model, read_sentences()))
    print(f"{REAL_TOKENS.name}: {REAL_TOKENS.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
