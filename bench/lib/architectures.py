"""The networks of the table in the README, in the structure their papers and reference implementations give them, with seeded weights:
what an inference costs depends on the structure, not on what was learned. The tokens and images are of the usual size."""
import numpy as np

from builder import Builder

TOKENS = 128


def resnet50(b, image=224):
    """He et al. 2015, with the stride in the 3x3 convolution as everyone trains it now."""
    x = b.conv_norm(b.input("input", [1, 3, image, image]), 3, 64, 7, stride=2, act=b.relu)
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for blocks, width, first in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for i in range(blocks):
            stride = first if i == 0 else 1
            y = b.conv_norm(x, channels, width, 1, act=b.relu)
            y = b.conv_norm(y, width, width, 3, stride=stride, act=b.relu)
            y = b.conv_norm(y, width, 4 * width, 1, gain=0.5)
            shortcut = b.conv_norm(x, channels, 4 * width, 1, stride=stride) if i == 0 else x
            x, channels = b.relu(b.op("Add", y, shortcut)), 4 * width
    b.output(b.classifier(x, channels), "output", [1, 1000])


def mobilenetv2(b, image=224):
    """Sandler et al. 2018: inverted residuals, width 1."""
    x, channels = b.conv_norm(b.input("input", [1, 3, image, image]), 3, 32, 3, stride=2, act=b.relu6), 32
    for expand, width, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(blocks):
            stride, hidden, y = first if i == 0 else 1, channels * expand, x
            if expand > 1:
                y = b.conv_norm(y, channels, hidden, 1, act=b.relu6)
            y = b.conv_norm(y, hidden, hidden, 3, stride=stride, groups=hidden, act=b.relu6)
            y = b.conv_norm(y, hidden, width, 1, gain=0.7)
            x, channels = b.op("Add", x, y) if stride == 1 and channels == width else y, width
    b.output(b.classifier(b.conv_norm(x, channels, 1280, 1, act=b.relu6), 1280), "output", [1, 1000])


def efficientnet_b0(b, image=224):
    """Tan and Le 2019: MBConv blocks with squeeze and excitation."""
    x, channels = b.conv_norm(b.input("input", [1, 3, image, image]), 3, 32, 3, stride=2, act=b.silu), 32
    for expand, width, blocks, first, kernel in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(blocks):
            stride, hidden, y = first if i == 0 else 1, channels * expand, x
            if expand > 1:
                y = b.conv_norm(y, channels, hidden, 1, act=b.silu)
            y = b.conv_norm(y, hidden, hidden, kernel, stride=stride, groups=hidden, act=b.silu)
            squeezed = b.silu(b.conv(b.op("GlobalAveragePool", y), hidden, max(1, channels // 4), 1, bias=True))
            y = b.op("Mul", y, b.op("Sigmoid", b.conv(squeezed, max(1, channels // 4), hidden, 1, bias=True)))
            y = b.conv_norm(y, hidden, width, 1)
            x, channels = b.op("Add", y, x) if stride == 1 and channels == width else y, width
    b.output(b.classifier(b.conv_norm(x, channels, 1280, 1, act=b.silu), 1280), "output", [1, 1000])


def bert_base(b, tokens=TOKENS, layers=12):
    """Devlin et al. 2018: 12 layers of 768, 12 heads; the hidden states and the pooled first token."""
    width, heads = 768, 12
    ids = b.input("input_ids", [1, tokens], "int64", "integer", 30522)
    visible = b.input("attention_mask", [1, tokens], "int64", "mask")
    segment = b.input("token_type_ids", [1, tokens], "int64", "zero")
    x = b.op("Gather", b.weight(b.normal(30522, width, scale=0.02)), ids, axis=0)
    x = b.op("Add", x, b.op("Gather", b.weight(b.normal(2, width, scale=0.02)), segment, axis=0))
    x = b.layer_norm(b.op("Add", x, b.weight(b.normal(1, tokens, width, scale=0.02))), width, 1e-12)
    mask = b.op("Cast", b.op("Unsqueeze", visible, b.ints(1, 2)), to=1)
    mask = b.op("Mul", b.op("Sub", b.literal(1.0), mask), b.literal(-10000.0))
    for _ in range(layers):
        q, k, v = (b.to_heads(b.linear(x, width, width), tokens, heads, width // heads) for _ in range(3))
        y = b.linear(b.attention(q, k, v, tokens, heads, width // heads, mask), width, width)
        x = b.layer_norm(b.op("Add", y, x), width, 1e-12)
        y = b.linear(b.gelu(b.linear(x, width, 4 * width)), 4 * width, width)
        x = b.layer_norm(b.op("Add", y, x), width, 1e-12)
    b.output(x, "last_hidden_state", [1, tokens, width])
    first = b.op("Gather", x, b.literal(0, np.int64), axis=1)
    pooled = b.op("Gemm", first, b.weight(b.normal(width, width, scale=0.02)), b.weight(b.normal(width, scale=0.02)), transB=1)
    b.output(b.op("Tanh", pooled), "pooler_output", [1, width])


def causal_mask(b, tokens, low):
    return b.weight(np.triu(np.full((1, 1, tokens, tokens), low, np.float32), 1))


def gpt2(b, tokens=TOKENS, layers=12):
    """Radford et al. 2019, the small one: the logits of every position; the output matrix is the embedding's transpose."""
    width, heads, words = 768, 12, 50257
    table = b.normal(words, width, scale=0.02)
    x = b.op("Gather", b.weight(table), b.input("input_ids", [1, tokens], "int64", "integer", words), axis=0)
    x = b.op("Add", x, b.weight(b.normal(1, tokens, width, scale=0.02)))
    mask = causal_mask(b, tokens, -10000.0)
    for _ in range(layers):
        y = b.linear(b.layer_norm(x, width), width, 3 * width)
        q, k, v = (b.to_heads(part, tokens, heads, width // heads) for part in b.op("Split", y, b.ints(width, width, width), count=3, axis=2))
        x = b.op("Add", x, b.linear(b.attention(q, k, v, tokens, heads, width // heads, mask), width, width))
        x = b.op("Add", x, b.linear(b.gelu_tanh(b.linear(b.layer_norm(x, width), width, 4 * width)), 4 * width, width))
    b.output(b.op("MatMul", b.layer_norm(x, width), b.weight(table.T)), "logits", [1, tokens, words])


def llama(b, decode, past=TOKENS, layers=4):
    """Touvron et al. 2023, four layers of TinyLlama's width: RMSNorm, rotary positions, SwiGLU. Prefill takes `past` tokens at once;
    decode takes one more, with keys and values of those before it."""
    width, heads, hidden, words, head = 2048, 32, 5632, 32000, 64
    tokens = 1 if decode else past
    ids = b.input("input_ids", [1, tokens], "int64", "integer", words)
    angles = np.outer(np.arange(2048), 10000.0 ** (-np.arange(0, head, 2) / head))
    angles = np.concatenate([angles, angles], -1)
    if decode:
        position, mask = b.input("position_ids", [1, 1], "int64", "constant", past), None
        cosine, sine = (b.op("Unsqueeze", b.op("Gather", b.weight(f(angles)), position, axis=0), b.ints(1)) for f in (np.cos, np.sin))
    else:
        cosine, sine = (b.weight(f(angles[:tokens])[None, None]) for f in (np.cos, np.sin))
        mask = causal_mask(b, tokens, -1e9)

    def rotate(x):
        left, right = b.op("Split", x, b.ints(head // 2, head // 2), count=2, axis=3)
        turned = b.op("Concat", b.op("Neg", right), left, axis=3)
        return b.op("Add", b.op("Mul", x, cosine), b.op("Mul", turned, sine))

    x = b.op("Gather", b.weight(b.normal(words, width, scale=0.02)), ids, axis=0)
    for layer in range(layers):
        y = b.rms_norm(x, width)
        q, k, v = (b.to_heads(b.linear(y, width, width, bias=False), tokens, heads, head) for _ in range(3))
        q, k = rotate(q), rotate(k)
        if decode:
            k, v = (b.op("Concat", b.input(f"past_{n}_{layer}", [1, heads, past, head]), t, axis=2) for n, t in (("key", k), ("value", v)))
            b.output(k, f"present_key_{layer}", [1, heads, past + 1, head])
            b.output(v, f"present_value_{layer}", [1, heads, past + 1, head])
        x = b.op("Add", x, b.linear(b.attention(q, k, v, tokens, heads, head, mask), width, width, bias=False))
        y = b.rms_norm(x, width)
        gate, up = b.silu(b.linear(y, width, hidden, bias=False)), b.linear(y, width, hidden, bias=False)
        x = b.op("Add", x, b.linear(b.op("Mul", gate, up), hidden, width, bias=False))
    x = b.op("MatMul", b.rms_norm(x, width), b.weight(b.normal(width, words, scale=0.02)))
    b.output(x, "logits", [1, tokens, words])


def llama_prefill(b):
    llama(b, decode=False)


def llama_decode(b):
    llama(b, decode=True)


def tiny(b):
    """Both kinds of layers in a millisecond: for tests of the benchmark itself."""
    x = b.conv_norm(b.input("input", [1, 3, 32, 32]), 3, 16, 3, stride=2, act=b.relu)
    x = b.classifier(b.conv_norm(x, 16, 32, 3, stride=2, act=b.silu), 32, 64)
    b.output(b.layer_norm(b.gelu(b.linear(x, 64, 64)), 64), "output", [1, 64])


TITLES = {"resnet50": "ResNet-50, 224", "mobilenetv2": "MobileNetV2, 224", "efficientnet_b0": "EfficientNet-B0, 224", "bert_base": "BERT-base, 128 tokens",
          "gpt2": "GPT-2, 128 tokens", "llama_prefill": "LLaMA-like, 4 layers, 128 tokens", "llama_decode": "LLaMA-like, one token"}
MAKERS = {f.__name__: f for f in (resnet50, mobilenetv2, efficientnet_b0, bert_base, gpt2, llama_prefill, llama_decode, tiny)}


def make(name, path):
    """Writes the network; returns what its runs need to know."""
    builder = Builder(name)
    MAKERS[name](builder)
    return dict(operations=builder.save(path), inputs=builder.inputs)
