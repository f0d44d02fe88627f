// Arithmetic element by element, casts and copies: eight elements a thread.

// The first of eight elements, or beyond n.
__device__ __forceinline__ i64 first_of_8() { return 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x); }

enum { kAdd = 0, kMul = 1 };
extern "C" __global__ void binary(Operand x, Operand y, Operand out, i64 n, int what) {
  const bool vec = aligned16(x) && aligned16(y) && aligned16(out);
  const i64 i = first_of_8();
  if (i + 8 <= n) {
    float a[8], b[8];
    load8(x, i, a, vec), load8(y, i, b, vec);
    for (int e = 0; e < 8; ++e) a[e] = what == kAdd ? a[e] + b[e] : a[e] * b[e];
    store8(out, i, a, vec);
  } else {
    for (i64 k = i; k < n; ++k)
      store(out, k, what == kAdd ? load(x, k) + load(y, k) : load(x, k) * load(y, k));
  }
}

// Times s[0], where that is given: a cast else.
extern "C" __global__ void scaled(Operand x, const float* s, Operand out, i64 n) {
  const bool vec = aligned16(x) && aligned16(out);
  const i64 i = first_of_8();
  const float factor = s != nullptr ? s[0] : 1.0f;
  if (i + 8 <= n) {
    float a[8];
    load8(x, i, a, vec);
    if (s != nullptr)
      for (int e = 0; e < 8; ++e) a[e] *= factor;
    store8(out, i, a, vec);
  } else {
    for (i64 k = i; k < n; ++k) store(out, k, s != nullptr ? load(x, k) * factor : load(x, k));
  }
}

extern "C" __global__ void bias_add_rows(Operand x, Operand bias, Operand out, i64 n, i64 cols) {
  const bool vec = aligned16(x) && aligned16(bias) && aligned16(out);
  const i64 i = first_of_8();
  if (cols % 8 == 0) {
    if (i >= n) return;
    float a[8], b[8];
    load8(x, i, a, vec), load8(bias, i % cols, b, vec);
    for (int e = 0; e < 8; ++e) a[e] += b[e];
    store8(out, i, a, vec);
  } else {
    for (i64 k = i; k < n && k < i + 8; ++k) store(out, k, load(x, k) + load(bias, k % cols));
  }
}

// Rows of a row pitch to dense ones in another dtype; `tf32`: rounded to that.
extern "C" __global__ void cast_rows(Operand x, i64 stride, Operand out, i64 rows, i64 cols, int tf32) {
  const i64 n = rows * cols, i = first_of_8();
  if (i >= n) return;
  if (cols % 8 == 0) {
    const bool vec = aligned16(x) && aligned16(out) && stride % 8 == 0;
    float v[8];
    load8(x, i / cols * stride + i % cols, v, vec);
    if (tf32)
      for (int e = 0; e < 8; ++e) v[e] = rounded_to_tf32(v[e]);
    store8(out, i, v, vec);
    return;
  }
  for (i64 k = i; k < n && k < i + 8; ++k) {
    const float v = load(x, k / cols * stride + k % cols);
    store(out, k, tf32 ? rounded_to_tf32(v) : v);
  }
}

// Four axes, the last the innermost; strides in units of `unit` bytes.
struct StridedCopy {
  i64 extent[4], from[4], to[4];
};
extern "C" __global__ void copy_strided(const char* from, char* to, StridedCopy c, int unit) {
  i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  i64 a = 0, b = 0;
  for (int axis = 3; axis >= 1; --axis) {
    if (c.extent[axis] == 1) continue;
    const i64 k = i % c.extent[axis];
    i /= c.extent[axis];
    a += k * c.from[axis], b += k * c.to[axis];
  }
  if (i >= c.extent[0]) return;
  a += i * c.from[0], b += i * c.to[0];
  if (unit == 16)
    ((uint4*)to)[b] = ((const uint4*)from)[a];
  else if (unit == 4)
    ((u32*)to)[b] = ((const u32*)from)[a];
  else if (unit == 2)
    ((u16*)to)[b] = ((const u16*)from)[a];
  else
    to[b] = from[a];
}
