"""Values: the tensors of a module while it is planned. They have a shape and a type, and no numbers."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence, Tuple, Union

from .errors import SettingError

if TYPE_CHECKING:
    from . import functional as f  # which needs the classes below, and puts itself in here
    from ._trace import Trace

Axes = Union[int, Sequence[int], None]


class Operand:
    """Operators and methods that values and parameters have in common. See the functions of the same names."""

    __array_ufunc__ = None  # numpy leaves `array + value` to the value

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes of the axes."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def size(self, dim: Optional[int] = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a value without axes has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError("a value has no numbers while the module is planned: use where() in place of if")

    def __iter__(self) -> Iterator["Value"]:
        return (self[index] for index in range(len(self)))

    # Operators.
    def __add__(self, other: Any) -> "Value":
        return f.add(self, other)

    def __radd__(self, other: Any) -> "Value":
        return f.add(other, self)

    def __sub__(self, other: Any) -> "Value":
        return f.sub(self, other)

    def __rsub__(self, other: Any) -> "Value":
        return f.sub(other, self)

    def __mul__(self, other: Any) -> "Value":
        return f.mul(self, other)

    def __rmul__(self, other: Any) -> "Value":
        return f.mul(other, self)

    def __truediv__(self, other: Any) -> "Value":
        return f.div(self, other)

    def __rtruediv__(self, other: Any) -> "Value":
        return f.div(other, self)

    def __pow__(self, other: Any) -> "Value":
        return f.pow(self, other)

    def __rpow__(self, other: Any) -> "Value":
        return f.pow(other, self)

    def __matmul__(self, other: Any) -> "Value":
        return f.matmul(self, other)

    def __rmatmul__(self, other: Any) -> "Value":
        return f.matmul(other, self)

    def __neg__(self) -> "Value":
        return f.neg(self)

    def __abs__(self) -> "Value":
        return f.abs(self)

    def __eq__(self, other: Any) -> Any:
        return f.eq(self, other)

    def __ne__(self, other: Any) -> Any:
        return f.ne(self, other)

    def __lt__(self, other: Any) -> "Value":
        return f.lt(self, other)

    def __le__(self, other: Any) -> "Value":
        return f.le(self, other)

    def __gt__(self, other: Any) -> "Value":
        return f.gt(self, other)

    def __ge__(self, other: Any) -> "Value":
        return f.ge(self, other)

    def __hash__(self) -> int:
        return id(self)

    def __getitem__(self, index: Any) -> "Value":
        return f.index(self, index)

    # Shapes.
    def reshape(self, *shape: Any) -> "Value":
        """The same elements in another shape, one of whose sizes may be -1."""
        return f.reshape(self, *shape)

    view = reshape

    def permute(self, *axes: Any) -> "Value":
        """The axes in another order."""
        return f.permute(self, *axes)

    def transpose(self, dim0: int, dim1: int) -> "Value":
        """Two axes exchanged."""
        return f.transpose(self, dim0, dim1)

    @property
    def mT(self) -> "Value":
        """The last two axes exchanged."""
        return f.transpose(self, -2, -1)

    @property
    def T(self) -> "Value":
        """A matrix transposed."""
        return f.transpose(self, 0, 1) if len(self.shape) == 2 else f.permute(
            self, tuple(reversed(range(len(self.shape)))))

    def flatten(self, start: int = 0, end: int = -1) -> "Value":
        """The axes from ``start`` to ``end`` as one."""
        return f.flatten(self, start, end)

    def unsqueeze(self, dim: int) -> "Value":
        """A new axis of size 1 before ``dim``."""
        return f.unsqueeze(self, dim)

    def squeeze(self, dim: int) -> "Value":
        """Without the axis, whose size is 1."""
        return f.squeeze(self, dim)

    def expand(self, *shape: Any) -> "Value":
        """Axes of size 1 repeated; -1 leaves a size as it is."""
        return f.expand(self, *shape)

    def split(self, sizes: Any, dim: int = 0, **words: Any) -> Any:
        """Parts along an axis: of one size, or of these sizes."""
        return f.split(self, sizes, **{"dim": dim, **words})

    def chunk(self, chunks: int, dim: int = 0, **words: Any) -> Any:
        """Splits along an axis into ``chunks`` equal parts."""
        return f.chunk(self, chunks, **{"dim": dim, **words})

    def detach(self) -> "Value":
        """The same numbers, through which no gradient flows."""
        return f.detach(self)

    def contiguous(self) -> "Value":
        """The value itself: the planner chooses the layout in memory."""
        return f.value(self)

    # Reductions and functions.
    def sum(self, dim: Axes = None, keepdim: bool = False, **words: Any) -> "Value":
        """The sum over all axes, or over some."""
        return f.sum(self, **{"dim": dim, "keepdim": keepdim, **words})

    def mean(self, dim: Axes = None, keepdim: bool = False, **words: Any) -> "Value":
        """The mean over all axes, or over some."""
        return f.mean(self, **{"dim": dim, "keepdim": keepdim, **words})

    def max(self, dim: Axes = None, keepdim: bool = False, **words: Any) -> "Value":
        """The largest element over all axes, or over some."""
        return f.max(self, **{"dim": dim, "keepdim": keepdim, **words})

    def softmax(self, dim: int = -1, **words: Any) -> "Value":
        """Exponentials that add up to 1 along an axis."""
        return f.softmax(self, **{"dim": dim, **words})

    def pow(self, exponent: Any) -> "Value":
        """Each element to the power ``exponent``."""
        return f.pow(self, exponent)

    def exp(self) -> "Value":
        """e to the power of each element."""
        return f.exp(self)

    def log(self) -> "Value":
        """The natural logarithm of each element."""
        return f.log(self)

    def sqrt(self) -> "Value":
        """The square root of each element."""
        return f.sqrt(self)

    def rsqrt(self) -> "Value":
        """One over the square root of each element."""
        return f.rsqrt(self)

    def abs(self) -> "Value":
        """The absolute value of each element."""
        return f.abs(self)

    def square(self) -> "Value":
        """The square of each element."""
        return f.square(self)

    def tanh(self) -> "Value":
        """The hyperbolic tangent of each element."""
        return f.tanh(self)

    def sigmoid(self) -> "Value":
        """1/(1 + e^-x) of each element."""
        return f.sigmoid(self)

    def relu(self) -> "Value":
        """The larger of each element and 0."""
        return f.relu(self)


class Value(Operand):
    """A tensor of the step: an input, or the result of an op. Made while ``plan()`` runs ``forward``, and used only there."""

    __slots__ = ("trace", "id", "_shape", "dtype")

    def __init__(self, trace: "Trace", number: int, shape: Tuple[int, ...], dtype: str) -> None:
        self.trace, self.id, self._shape = trace, number, shape
        #: "float32", "bfloat16", "float16" or "int32"
        self.dtype = dtype

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes of the axes."""
        return self._shape

    def __repr__(self) -> str:
        return f"Value({self.dtype} {list(self._shape)})"

    def __reduce__(self) -> Any:
        raise SettingError("a value belongs to the plan that is being made and cannot be pickled or copied")
