// The table of angles, and the turn of heads.

extern "C" __global__ void rope_table(const float* inv_freq, const int* positions, float* table, i64 rows,
                                      i64 half, double factor) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= rows * half) return;
  const i64 row = i / half, f = i % half;
  const double angle = (positions != nullptr ? (double)positions[row] : (double)row) * (double)inv_freq[f];
  table[row * 2 * half + f] = (float)(cos(angle) * factor);
  table[row * 2 * half + half + f] = (float)(sin(angle) * factor);
}

struct RopeRows {
  Operand x, y;
  const float* table;
  i64 rows, stride, heads, turned, half, table_rows;
  float sign;
};
// A thread takes eight pairs of a head, or one where heads are no multiple of that. Heads behind the turned
// ones are copied, where y is not x.
extern "C" __global__ void rope_rows(RopeRows a) {
  const int width = a.half % 8 == 0 ? 8 : 1;
  const i64 parts = a.half / width, heads = a.y.data == a.x.data ? a.turned : a.heads;
  i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.rows * heads * parts) return;
  const i64 p = i % parts * width;
  i /= parts;
  const i64 head = i % heads, row = i / heads;
  const i64 from = row * a.stride + head * 2 * a.half + p, to = (row * a.heads + head) * 2 * a.half + p;
  const float* cosines = a.table + row % a.table_rows * 2 * a.half + p;
  const bool turns = head < a.turned;
  if (width == 8) {
    const bool vec = aligned16(a.x) && aligned16(a.y) && a.stride % 8 == 0;
    float u[8], v[8];
    load8(a.x, from, u, vec), load8(a.x, from + a.half, v, vec);
    if (turns)
      for (int e = 0; e < 8; ++e) {
        const float c = cosines[e], s = a.sign * cosines[a.half + e], x = u[e];
        u[e] = x * c - v[e] * s;
        v[e] = v[e] * c + x * s;
      }
    store8(a.y, to, u, vec), store8(a.y, to + a.half, v, vec);
    return;
  }
  const float u = load(a.x, from), v = load(a.x, from + a.half), c = turns ? cosines[0] : 1.0f,
              s = turns ? a.sign * cosines[a.half] : 0.0f;
  store(a.y, to, turns ? u * c - v * s : u);
  store(a.y, to + a.half, turns ? v * c + u * s : v);
}
