// Arguments of adafactor.cu.
#pragma once

#include "backends/cuda/kernels/optimizer/tensor_update_args.h"

namespace plimsoll::cuda {

constexpr int kAdafactorThreads = 256;
constexpr int kAdafactorBlock = 8 * kAdafactorThreads;  ///< elements of a vector that a block takes

/// One of the checkpoint's tensors (a part of the parameter): a matrix [rows, cols] with moments by rows and
/// by columns, a vector with a whole one, or filters with both for each output and input.
struct Adafactor {
  TensorStep t;
  float *row = nullptr, *col = nullptr;  ///< moments [rows], [cols]; null: a vector's
  float* v = nullptr;                    ///< a vector's moment [n]
  Operand m;                             ///< first moment, where there is one
  float* col_factors = nullptr;          ///< [cols]: 1 / sqrt(col)
  float* col_sums = nullptr;             ///< [tiles, cols]: squares' sums over a tile's rows
  double *param_squares = nullptr, *update_squares = nullptr;  ///< of each row, or of each block of a vector
  double* scalars = nullptr;  ///< mean of the rows' moments, rate, rate over the clip
  i64 rows = 0, cols = 0;
  i64 height = 0, width = 0, in = 0;  ///< of filters, whose moments are [rows, height, in], [rows, width, in]
  i64 tile_rows = 0, tiles = 0;
  i64 sums = 0;      ///< rows, or blocks of a vector or of filters
  int m_result = 0;  ///< which of the op's results m is
};
static_assert(sizeof(Adafactor) <= kMostArgumentBytes);

inline constexpr DeviceKernel<Adafactor> kAdafactorRows{"optimizer/adafactor", "adafactor_rows"};
inline constexpr DeviceKernel<Adafactor> kAdafactorColumns{"optimizer/adafactor", "adafactor_columns"};
inline constexpr DeviceKernel<Adafactor> kAdafactorColumnMoments{"optimizer/adafactor",
                                                                 "adafactor_column_moments"};
inline constexpr DeviceKernel<Adafactor> kAdafactorRowMean{"optimizer/adafactor", "adafactor_row_mean"};
inline constexpr DeviceKernel<Adafactor> kAdafactorUpdates{"optimizer/adafactor", "adafactor_updates"};
inline constexpr DeviceKernel<Adafactor> kAdafactorVector{"optimizer/adafactor", "adafactor_vector"};
inline constexpr DeviceKernel<Adafactor> kAdafactorFilters{"optimizer/adafactor", "adafactor_filters"};
inline constexpr DeviceKernel<Adafactor> kAdafactorFiltersStep{"optimizer/adafactor",
                                                               "adafactor_filters_step"};
inline constexpr DeviceKernel<Adafactor> kAdafactorSettle{"optimizer/adafactor", "adafactor_settle"};
inline constexpr DeviceKernel<Adafactor> kAdafactorStep{"optimizer/adafactor", "adafactor_step"};
inline constexpr DeviceKernel<Adafactor> kAdafactorVectorStep{"optimizer/adafactor", "adafactor_vector_step"};

}  // namespace plimsoll::cuda
