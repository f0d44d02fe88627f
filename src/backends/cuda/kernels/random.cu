// Draws as ops/philox.h lays them out: four elements a thread.

// x [sequences, n]; kept where its word is at least the threshold, then divided by `keep`.
extern "C" __global__ void dropout(Operand x, const u32* random, Operand out, i64 sequences, i64 n, u32 key,
                                   u64 threshold, float keep) {
  const i64 quads = (n + 3) / 4, at = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (at >= sequences * quads) return;
  const i64 sequence = at / quads, quad = at % quads;
  const uint4 words = philox4((u32)quad, random[3] + (u32)sequence, random[2], key, random[0], random[1]);
  for (int e = 0; e < 4 && 4 * quad + e < n; ++e) {
    const i64 i = sequence * n + 4 * quad + e;
    store(out, i, (u64)word_of(words, e) >= threshold ? load(x, i) / keep : 0.0f);
  }
}

extern "C" __global__ void random_normal(const u32* random, Operand out, i64 n, double mean, double std,
                                         u32 key) {
  const i64 quad = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (4 * quad >= n) return;
  const uint4 words = philox4((u32)quad, 0, 0, key, random[0], random[1]);
  for (int pair = 0; pair < 2; ++pair) {
    const double u = ((double)word_of(words, 2 * pair) + 0.5) * 0x1p-32;
    const double angle = 6.283185307179586 * (((double)word_of(words, 2 * pair + 1) + 0.5) * 0x1p-32);
    const double radius = sqrt(-2.0 * log(u));
    const i64 i = 4 * quad + 2 * pair;
    if (i < n) store(out, i, (float)(mean + std * (radius * cos(angle))));
    if (i + 1 < n) store(out, i + 1, (float)(mean + std * (radius * sin(angle))));
  }
}
