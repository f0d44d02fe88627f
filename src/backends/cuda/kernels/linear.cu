// Broadcasts the bias before a matrix product that adds to it: the bias in each row.
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

// What follows a product that is added to columns of a result in another dtype than it is summed in.
extern "C" __global__ void add_to_columns(const float* sums, Operand out, i64 n, i64 cols, i64 width,
                                          i64 first) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= n) return;
  const i64 at = i / cols * width + first + i % cols;
  store(out, at, load(out, at) + sums[i]);
}
