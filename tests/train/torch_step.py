"""The GPT-2 of train_step (src/train/small_gpt2.h) in PyTorch, eager, with its fused AdamW; told what to do on its standard input.
usage: torch_step.py LAYERS WIDTH HEADS WORDS LENGTH SENTENCES THREADS GIVEN     GIVEN: what `train_step` wrote for "given"
    step RATE       one step; answers seconds and loss
    compare FILE    the last step against a "result" of train_step: each gradient's largest difference over its largest element"""
import json
import math
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

TYPES = {"F32": np.float32, "I64": np.int64, "BOOL": np.bool_}
DECAY, MOST_NORM = 0.01, 1.0


def read(path):
    """A safetensors file as arrays."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[e["data_offsets"][0]:e["data_offsets"][1]], TYPES[e["dtype"]]).reshape(e["shape"])
            for name, e in header.items()}


class Model:
    def __init__(self, numbers, given):
        self.layers, self.width, self.heads, self.words, self.length, self.sentences, threads = numbers
        torch.set_num_threads(threads)
        given = {name: torch.from_numpy(array.copy()) for name, array in given.items()}
        self.data = {name: given.pop(name) for name in ("tokens", "labels", "legal", "weights")}
        self.illegal = ~self.data["legal"]
        self.p = {name: torch.nn.Parameter(t) for name, t in given.items()}
        groups = [{"params": [t for t in self.p.values() if t.dim() >= 2], "weight_decay": DECAY},
                  {"params": [t for t in self.p.values() if t.dim() < 2], "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, fused=True)
        self.gradients, self.loss, self.norm = {}, None, None

    def norm_layer(self, x, name):
        return F.layer_norm(x, (self.width,), self.p[name + ".g"], self.p[name + ".b"], 1e-5)

    def dense(self, x, name):
        return torch.addmm(self.p[name + ".b"], x, self.p[name + ".w"])

    def forward(self):
        s, l, size = self.sentences, self.length, self.width // self.heads
        x = (F.embedding(self.data["tokens"], self.p["wte"]) + self.p["wpe"]).view(s * l, self.width)
        for i in range(self.layers):
            h = f"h{i}."
            qkv = self.dense(self.norm_layer(x, h + "ln1"), h + "qkv").view(s, l, 3, self.heads, size)
            q, k, v = (qkv[:, :, j].transpose(1, 2) for j in range(3))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1 / math.sqrt(size))
            x = x + self.dense(mixed.transpose(1, 2).reshape(s * l, self.width), h + "proj")
            wide = F.gelu(self.dense(self.norm_layer(x, h + "ln2"), h + "fc"), approximate="tanh")
            x = x + self.dense(wide, h + "out")
        logits = self.norm_layer(x, "lnf") @ self.p["wte"].t()
        masked = logits.masked_fill(self.illegal, -1e9)
        return (F.cross_entropy(masked, self.data["labels"], reduction="none") * self.data["weights"]).sum()

    def step(self, rate, keep=True):
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.forward()
        loss.backward()
        if keep:
            self.gradients = {name: t.grad.clone() for name, t in self.p.items()}
        self.norm = torch.nn.utils.clip_grad_norm_(list(self.p.values()), MOST_NORM)
        self.optimiser.step()
        self.loss = loss.item()

    def compare(self, result):
        def off(mine, theirs):
            mine = mine.detach().numpy()
            return float(np.abs(mine - theirs).max() / max(np.abs(mine).max(), 1e-30))
        out = {"loss": abs(self.loss - float(result["loss"])) / abs(self.loss),
               "norm": abs(float(self.norm) - float(result["gradient.norm"])) / float(self.norm)}
        for name, t in self.p.items():
            out["gradient." + name] = off(self.gradients[name], result["gradient." + name])
            out["next." + name] = off(t, result[name])
        return out


def main():
    keep = "--keep" in sys.argv
    words = [w for w in sys.argv[1:] if w != "--keep"]
    model = Model([int(w) for w in words[:7]], read(words[7]))
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        what, argument = line.split()
        if what == "step":
            start = time.perf_counter()
            model.step(float(argument), keep)
            print(time.perf_counter() - start, model.loss, flush=True)
        elif what == "compare":
            print(json.dumps(model.compare(read(argument))), flush=True)


if __name__ == "__main__":
    main()
