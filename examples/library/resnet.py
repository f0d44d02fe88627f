"""A residual network that tells in which direction the stripes of a noisy picture run."""
import numpy as np
import plimsoll as pl


class Block(pl.Module):
    def __init__(self, inputs, outputs, stride):
        self.conv1, self.bn1 = pl.Conv2d(inputs, outputs, 3, stride, 1, bias=False), pl.BatchNorm2d(outputs)
        self.conv2, self.bn2 = pl.Conv2d(outputs, outputs, 3, 1, 1, bias=False), pl.BatchNorm2d(outputs)
        self.downsample = None if inputs == outputs else pl.Sequential(
            pl.Conv2d(inputs, outputs, 1, stride, bias=False), pl.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(pl.relu(self.bn1(self.conv1(x)))))
        return pl.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(pl.Module):
    def __init__(self, widths=(16, 32, 64), classes=4):
        self.conv1, self.bn1 = pl.Conv2d(3, widths[0], 3, padding=1, bias=False), pl.BatchNorm2d(widths[0])
        self.layers = [Block(a, b, 1 if a == b else 2) for a, b in zip(widths[:1] + widths, widths)]
        self.fc = pl.Linear(widths[-1], classes)

    def forward(self, images, labels):                         # images [batch, 3, height, width]
        x = pl.max_pool2d(pl.relu(self.bn1(self.conv1(images))), 2)
        for layer in self.layers:
            x = layer(x)
        return pl.cross_entropy(self.fc(x.mean((2, 3))), labels)


def batch(rows, seed, size=16):
    rng = np.random.default_rng(seed)
    labels, at = rng.integers(0, 4, rows), np.arange(size)
    waves = np.stack([np.cos(1.5 * (a * at[:, None] + b * at)) for a, b in ((1, 0), (0, 1), (1, 1), (1, -1))])
    return {"images": (rng.normal(0, 1, (rows, 3, size, size)) + waves[labels][:, None]).astype(np.float32), "labels": labels}


def main(steps=60, rows=32):
    plan = pl.plan(ResNet(), inputs={"images": ((rows, 3, 16, 16), "float32"), "labels": ((rows,), "int32")},
                   optimizer=pl.SGD(lr=0.05, momentum=0.9, weight_decay=1e-4), memory_budget="256MiB")
    with pl.Session(plan, seed=0) as session:
        for i in range(steps):
            step = session.step(batch(rows, i))
        loss = session.evaluate(batch(rows, steps))            # with the running means and variances
    print(f"loss {step.loss:.3f}, on new pictures {loss:.3f}")
    return loss


if __name__ == "__main__":
    main()
