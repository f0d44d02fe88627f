// silu, gelu in its forms (gelu.h's order), and what is fused with them.
enum { kSilu = 3 };  // behind gelu's forms

__device__ __forceinline__ float act_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float act_value(float x, int form) {
  if (form == kSilu) return x * act_sigmoid(x);
  if (form == 0) return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  if (form == 1) return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
  return x * act_sigmoid(1.702f * x);
}
__device__ __forceinline__ float act_slope(float x, int form) {
  if (form == kSilu) {
    const float s = act_sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
  }
  if (form == 0)
    return 0.5f * (1.0f + erff(x * 0.70710678118654752f)) + x * 0.39894228040143268f * expf(-0.5f * x * x);
  if (form == 1) {
    const float t = tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) +
           0.5f * x * (1.0f - t * t) * 0.79788456080286536f * (1.0f + 3.0f * 0.044715f * x * x);
  }
  const float s = act_sigmoid(1.702f * x);
  return s + x * 1.702f * s * (1.0f - s);
}

// value(x + bias), where `bias` is given; with dy: dy * slope(x + bias).
extern "C" __global__ void activate(Operand dy, Operand x, Operand bias, Operand out, i64 n, i64 cols,
                                    int form) {
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= n) return;
  const bool vec = aligned16(dy) && aligned16(x) && aligned16(bias) && aligned16(out);
  if (i + 8 <= n && (cols % 8 == 0 || !given(bias))) {
    float a[8], b[8] = {}, d[8];
    load8(x, i, a, vec);
    if (given(bias)) load8(bias, i % cols, b, vec);
    if (given(dy)) load8(dy, i, d, vec);
    for (int e = 0; e < 8; ++e) {
      const float v = given(bias) ? a[e] + b[e] : a[e];
      a[e] = given(dy) ? d[e] * act_slope(v, form) : act_value(v, form);
    }
    store8(out, i, a, vec);
    return;
  }
  for (i64 k = i; k < n && k < i + 8; ++k) {
    const float v = given(bias) ? load(x, k) + load(bias, k % cols) : load(x, k);
    store(out, k, given(dy) ? load(dy, k) * act_slope(v, form) : act_value(v, form));
  }
}

// x: rows of 2 * cols, gate then up. n elements of results of width cols.
extern "C" __global__ void swiglu(Operand x, Operand out, i64 n, i64 cols) {
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= n) return;
  if (cols % 8 == 0) {
    const bool vec = aligned16(x) && aligned16(out);
    const i64 gate = i / cols * 2 * cols + i % cols;
    float g[8], u[8];
    load8(x, gate, g, vec), load8(x, gate + cols, u, vec);
    for (int e = 0; e < 8; ++e) g[e] = act_value(g[e], kSilu) * u[e];
    store8(out, i, g, vec);
    return;
  }
  for (i64 k = i; k < n && k < i + 8; ++k) {
    const i64 gate = k / cols * 2 * cols + k % cols;
    store(out, k, act_value(load(x, gate), kSilu) * load(x, gate + cols));
  }
}
// `out` may lie where x does: a pair is read whole before it is written.
extern "C" __global__ void swiglu_grad(Operand dy, Operand x, Operand out, i64 n, i64 cols) {
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= n) return;
  if (cols % 8 == 0) {
    const bool vec = aligned16(dy) && aligned16(x) && aligned16(out);
    const i64 gate = i / cols * 2 * cols + i % cols;
    float g[8], u[8], d[8];
    load8(x, gate, g, vec), load8(x, gate + cols, u, vec), load8(dy, i, d, vec);
    for (int e = 0; e < 8; ++e) {
      const float s = act_sigmoid(g[e]);
      const float d_gate = d[e] * u[e] * (s * (1.0f + g[e] * (1.0f - s)));
      u[e] = d[e] * (g[e] * s);
      g[e] = d_gate;
    }
    store8(out, gate, g, vec), store8(out, gate + cols, u, vec);
    return;
  }
  for (i64 k = i; k < n && k < i + 8; ++k) {
    const i64 gate = k / cols * 2 * cols + k % cols;
    const float g = load(x, gate), u = load(x, gate + cols), d = load(dy, k);
    store(out, gate, d * u * act_slope(g, kSilu));
    store(out, gate + cols, d * act_value(g, kSilu));
  }
}
