"""The models of examples/library in PyTorch: parameters of the same names, the loss from the same inputs."""
import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self, inputs=3, hidden=64, layers=3):
        super().__init__()
        self.embed = nn.Linear(inputs, hidden)
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, 1)

    def forward(self, x, y):
        h = self.embed(x)
        for layer in self.layers:
            h = h + layer(F.gelu(h))
        return F.mse_loss(self.head(self.norm(h)), y)


def attend(qkv, heads, causal):
    b, t, d = qkv.shape
    q, k, v = [p.reshape(b, t, heads, -1).transpose(1, 2) for p in qkv.chunk(3, dim=-1)]
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(b, t, d // 3)


class ByteBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = x + self.out(attend(self.qkv(self.norm1(x)), self.heads, True))
        return x + self.down(F.silu(self.up(self.norm2(x))))


class ByteLM(nn.Module):
    def __init__(self, dim=64, layers=3, heads=4, tokens=64):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(256, dim), nn.Parameter(torch.zeros(tokens, dim))
        self.layers = nn.ModuleList(ByteBlock(dim, heads) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(dim), nn.Linear(dim, 256, bias=False)

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten().long())


class ViTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.norm2, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        x = x + self.out(attend(self.qkv(self.norm1(x)), self.heads, False))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self, size=16, patch=4, dim=48, layers=2, heads=3, classes=4):
        super().__init__()
        self.patch, self.embed, self.cls = patch, nn.Linear(patch * patch, dim), nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.zeros(1 + (size // patch) ** 2, dim))
        self.layers = nn.Sequential(*[ViTBlock(dim, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, images, labels):
        b, s, n = images.shape[0], images.shape[1] // self.patch, self.patch
        x = self.embed(images.reshape(b, s, n, s, n).permute(0, 1, 3, 2, 4).reshape(b, s * s, n * n))
        x = torch.cat([self.cls.expand(b, 1, -1), x], dim=1) + self.positions
        return F.cross_entropy(self.head(self.norm(self.layers(x))[:, 0]), labels.long())


class Tower(nn.Module):
    def __init__(self, vocabulary, dim, out):
        super().__init__()
        self.words, self.up, self.down = nn.Embedding(vocabulary, dim), nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, out)

    def forward(self, ids):
        x = self.down(F.relu(self.up(self.words(ids).mean(dim=1))))
        return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)


class TwoTowers(nn.Module):
    def __init__(self, vocabulary=200, dim=32, out=16):
        super().__init__()
        self.query, self.document = Tower(vocabulary, dim, out), Tower(vocabulary, dim, out)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, queries, documents):
        scores = self.query(queries) @ self.document(documents).T * torch.exp(self.scale)
        own = torch.arange(scores.shape[0])
        return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2


class OwnLoop(nn.Module):
    def __init__(self, dim=64, layers=4, classes=10):
        super().__init__()
        self.embed, self.head = nn.Linear(20, dim), nn.Linear(dim, classes)
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.norms = nn.ModuleList(nn.RMSNorm(dim) for _ in range(layers))

    def forward(self, x, labels):
        h = self.embed(x)
        for layer, norm in zip(self.layers, self.norms):
            h = h + F.relu(layer(norm(h)))
        return F.cross_entropy(self.head(h), labels.long())


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = None if inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, widths=(16, 32, 64), classes=4):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0])
        self.layers = nn.ModuleList(ResidualBlock(a, b, 1 if a == b else 2) for a, b in zip(widths[:1] + widths, widths))
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, images, labels):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(images))), 2)
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.fc(x.mean((2, 3))), labels.long())
