// Products of operands in FP8 and FP4 as cuBLASLt's documents define them ("Narrow Precision Data Types
// Usage", cublasLtMatmul()): what they refuse, and where the scales of blocks lie.
#pragma once

#include "reference_product.h"

namespace fake {

/// Whether that type's numbers have scales.
bool is_narrow(int type);
/// A cublasStatus_t: whether a card of that capability (90) takes the product, with addresses aligned so.
int check_narrow(const MatrixProduct& product, const uint32_t (&alignments)[4], int capability);
/// The number of the code of element `i`, without scales.
float narrow_value(const void* data, int type, int64_t i);
/// The scale of element l of line `line`; lines: of a the rows, of b the columns.
float scale_of(const Scales& scales, int64_t line, int64_t l, int64_t lines, int64_t k);

}  // namespace fake
