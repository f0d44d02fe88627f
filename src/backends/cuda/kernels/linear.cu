// What goes before a product that adds a bias: the bias in each row.
extern "C" __global__ void broadcast_row(Operand row, Operand out, i64 n, i64 cols) {
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= n) return;
  if (cols % 8 == 0) {
    const bool vec = aligned16(row) && aligned16(out);
    float v[8];
    load8(row, i % cols, v, vec);
    store8(out, i, v, vec);
    return;
  }
  for (i64 k = i; k < n && k < i + 8; ++k) store(out, k, load(row, k % cols));
}
