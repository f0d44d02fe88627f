"""Functions on images, [batch, channels, height, width] as in PyTorch. The planner keeps channels last in memory: nothing is
copied between two of these functions."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ._module import _size
from ._trace import append, operand, scope
from ._values import Value
from .errors import SettingError

#: one number for both axes of an image, or (height, width)
Pair = Union[int, Sequence[int]]


def pair(what: str, name: str, given: Any) -> Tuple[int, int]:
    """One number for both axes, or two. Errors: SettingError."""
    items = list(given) if isinstance(given, (tuple, list)) else [given] * 2
    if len(items) == 1:
        items *= 2
    if len(items) != 2 or any(isinstance(item, bool) or not hasattr(item, "__index__") for item in items):
        raise SettingError(f"{what}: {name} is {given!r}", "an integer, or a pair of integers: (height, width)")
    return int(items[0]), int(items[1])


def single(what: str, name: str, given: Any) -> int:
    """One number, or a sequence of one. Errors: SettingError."""
    items = list(given) if isinstance(given, (tuple, list)) else [given]
    if len(items) != 1 or isinstance(items[0], bool) or not hasattr(items[0], "__index__"):
        raise SettingError(f"{what}: {name} is {given!r}", "an integer")
    return int(items[0])


def padding_of(what: str, padding: Any, kernel: Sequence[int], stride: Any, dilation: Any) -> Tuple[int, int]:
    """Numbers for "valid" and "same". Errors: SettingError."""
    if not isinstance(padding, str):
        return pair(what, "padding", padding)
    if padding == "valid":
        return 0, 0
    if padding != "same":
        raise SettingError(f"{what}: padding is {padding!r}", "an integer, a pair, valid or same")
    if pair(what, "stride", stride) != (1, 1):
        raise SettingError(f"{what}: padding same needs a stride of 1")
    reach = [d * (k - 1) for d, k in zip(pair(what, "dilation", dilation), kernel)]
    if any(size % 2 for size in reach):
        raise SettingError(f"{what}: a kernel of {list(kernel)} needs different padding on both sides for padding same",
                           "use an odd kernel, or numbers for the padding")
    return reach[0] // 2, reach[1] // 2


def conv2d(x: Any, weight: Any, bias: Any = None, stride: Pair = 1, padding: Union[Pair, str] = 0, dilation: Pair = 1,
           groups: int = 1) -> Value:
    """x [batch, in, height, width], weight [out, in / groups, kernel height, kernel width], bias [out]
    → [batch, out, …, …], as ``torch.nn.functional.conv2d``."""
    weight = operand(weight)
    kernel = weight.shape[2:] if weight.ndim == 4 else (1, 1)  # the library refuses a weight of other axes
    around = padding_of("conv2d", padding, kernel, stride, dilation)
    return append("conv2d", [x, weight, bias], stride=pair("conv2d", "stride", stride), padding=around,
                  dilation=pair("conv2d", "dilation", dilation), groups=_size("conv2d", "groups", groups))


def conv1d(x: Any, weight: Any, bias: Any = None, stride: Pair = 1, padding: Union[Pair, str] = 0, dilation: Pair = 1,
           groups: int = 1) -> Value:
    """x [batch, in, length], weight [out, in / groups, kernel], bias [out] → [batch, out, …], as
    ``torch.nn.functional.conv1d``. It is a ``conv2d`` of images of one row."""
    x, weight = operand(x), operand(weight)
    if x.ndim != 3 or weight.ndim != 3:
        raise SettingError(f"conv1d: x is {list(x.shape)}, and the weight is {list(weight.shape)}",
                           "[batch, channels, length], and [out, in / groups, kernel]")
    steps, spread = ((1, single("conv1d", name, given)) for name, given in (("stride", stride), ("dilation", dilation)))
    around = padding if isinstance(padding, str) else (0, single("conv1d", "padding", padding))
    y = conv2d(x.unsqueeze(2), weight.unsqueeze(2), bias, steps, around, spread, groups)
    return append("reshape", [y], shape=[y.shape[0], y.shape[1], y.shape[3]])


def _window(what: str, kernel_size: Pair, stride: Optional[Pair], padding: Pair) -> Dict[str, Any]:
    kernel = pair(what, "kernel_size", kernel_size)
    return {"kernel": kernel, "stride": kernel if stride is None else pair(what, "stride", stride),
            "padding": pair(what, "padding", padding)}


def max_pool2d(x: Any, kernel_size: Pair, stride: Optional[Pair] = None, padding: Pair = 0) -> Value:
    """The largest element of each window; windows follow each other by ``stride``, the kernel's size unless given."""
    return append("max_pool2d", [x], **_window("max_pool2d", kernel_size, stride, padding))


def avg_pool2d(x: Any, kernel_size: Pair, stride: Optional[Pair] = None, padding: Pair = 0,
               count_include_pad: bool = True) -> Value:
    """The mean of each window; padding counts as zeros unless ``count_include_pad`` is false."""
    return append("avg_pool2d", [x], count_include_pad=bool(count_include_pad),
                  **_window("avg_pool2d", kernel_size, stride, padding))


def adaptive_avg_pool2d(x: Any, output_size: Any) -> Value:
    """The image as ``output_size`` means of windows, as ``torch.nn.functional.adaptive_avg_pool2d``. ``None`` keeps a size."""
    x = operand(x)
    given: List[Any] = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * 2
    sizes = pair("adaptive_avg_pool2d", "output_size",
                 [x.shape[2 + at] if size is None and x.ndim == 4 and at < 2 else size for at, size in enumerate(given)])
    if x.ndim != 4 or min(sizes) < 1 or (x.shape[2] % sizes[0] == 0 and x.shape[3] % sizes[1] == 0):
        return append("adaptive_avg_pool2d", [x], size=sizes)
    rows, columns = (_means(extent, size) for extent, size in zip(x.shape[2:], sizes))
    with scope("autocast", "fp32"):  # no product of the model
        return append("matmul", [rows, append("matmul", [x, columns], transpose_b=True)])


def _means(extent: int, size: int) -> Any:
    """[size, extent]: means of windows of different sizes, which may share an element."""
    import numpy

    means = numpy.zeros((size, extent), numpy.float32)
    for at in range(size):
        begin, end = at * extent // size, -(-(at + 1) * extent // size)
        means[at, begin:end] = 1 / (end - begin)
    return means


def batch_norm(x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
               training: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Value:
    """x [batch, channels, …] → each channel with mean 0 and variance 1 over the batch, then weight and bias [channels].

    In a step the running values (``Buffer``) follow the batch's by ``momentum``; ``evaluate`` uses them. With
    ``training=False`` steps use them too, and they stay as they are. Without running values the batch's are used always.
    """
    return append("batch_norm", [x, weight, bias, running_mean, running_var], training=bool(training),
                  momentum=float(momentum), eps=float(eps))


def group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Value:
    """x [batch, channels, …] → each sample's groups of channels with mean 0 and variance 1, then weight and bias [channels]."""
    return append("group_norm", [x, weight, bias], groups=_size("group_norm", "num_groups", num_groups), eps=float(eps))
