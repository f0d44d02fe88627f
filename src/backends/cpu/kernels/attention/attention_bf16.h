// Attention of bf16 operands on AVX512_BF16 or AMX: products of bf16 with fp32 sums, on the panels and
// kernels of gemm_bf16.h; softmax in fp32. Queries lie in rows and keys in lanes, all of it in blocks of
// 32 x 32. P and dS are rounded to bf16 for the products that they enter.
//
//   forward    S = Q K^T ─► m, P = 2^(c S - m), l = sum P ─► O = O 2^(m' - m) + P V        c = scale log2(e)
//
//   backward   S = Q K^T  ─► P = 2^(c S - lse) ──────────► dV^T += dO^T P
//              dP = dO V^T ─► dS = P (dP - sum dO O) ─┬──► dK^T += Q^T dS
//                                                     └──► dQ   += dS K
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/kernels/attention/attention.h"

namespace plimsoll::cpu {

/// The bits of a bf16.
using Bf16 = uint16_t;

/// Whether the instruction set in use has products of bf16 (isa.h).
bool attention_has_bf16();

/// Bytes of scratch, functions of the shape and the number of threads alone. Forward they hold a packed copy
/// of k and v; backward, where a sequence has more than 256 tokens, dq in fp32.
int64_t attention_bf16_forward_workspace_bytes(const AttentionShape& shape, int num_threads);
int64_t attention_bf16_backward_workspace_bytes(const AttentionShape& shape, int num_threads);

/// As attention_forward (attention.h), on a CPU with attention_has_bf16(); not over a cache.
/// Dtypes: q, k, v, out bf16, lse f32; denormals of bf16 count as zero. Exponentials within 3e-6.
/// Determinism: as attention_forward.
/// Memory: `workspace` holds attention_bf16_forward_workspace_bytes(), aligned to 64; nothing is allocated.
/// Source: Dao 2023, arXiv:2307.08691, its roundings as in PyTorch's CPU kernel.
void attention_bf16_forward(const AttentionArgsOf<Bf16>& args, ThreadPool& pool,
                            std::span<std::byte> workspace);

/// As attention_backward: dq, dk and dv are summed in fp32 and rounded once.
void attention_bf16_backward(const AttentionBackwardArgsOf<Bf16>& args, ThreadPool& pool,
                             std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
