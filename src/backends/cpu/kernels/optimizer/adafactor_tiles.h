// Tiling of a tensor for Adafactor, from its shape alone, and the layout of partial sums in the workspace.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "ir/shape.h"

namespace plimsoll::cpu {

inline constexpr int64_t kMostTiles = 32;       // of a part; each has sums over its columns
inline constexpr int64_t kLeastTile = 1 << 14;  // elements

/// How a tensor is cut: its parts, each in tiles of as many rows; where everything lies in the workspace.
class Tiles {
 public:
  struct Part {
    int64_t row, rows, tile_rows, first_tile, tiles;
  };

  Tiles(const ir::Shape& shape, const std::vector<int64_t>& parts, bool is_factored)
      : cols_(shape.num_elements() / shape.dim(0)),
        num_parts_(static_cast<int64_t>(parts.size())),
        parts_(parts),
        is_factored_(is_factored) {
    for (int64_t p = 0; p < num_parts_; ++p) num_tiles_ += part(p).tiles;
  }
  /// In time that grows with the parts, which are few.
  [[nodiscard]] Part part(int64_t index) const {
    Part p{0, 0, 0, 0, 0};
    for (int64_t i = 0; i <= index; ++i) {
      p.row += p.rows;
      p.first_tile += p.tiles;
      p.rows = parts_[static_cast<size_t>(i)];
      p.tile_rows = std::max(ceil_div(p.rows, kMostTiles), ceil_div(kLeastTile, cols_));
      p.tiles = ceil_div(p.rows, p.tile_rows);
    }
    return p;
  }
  [[nodiscard]] int64_t part_of_tile(int64_t tile) const {
    int64_t p = 0;
    for (Part at = part(0); tile >= at.first_tile + at.tiles; at = part(p)) ++p;
    return p;
  }
  [[nodiscard]] int64_t cols() const { return cols_; }
  [[nodiscard]] int64_t num_parts() const { return num_parts_; }
  [[nodiscard]] int64_t num_tiles() const { return num_tiles_; }

  // A tile's sums: of its rows' moments, of the parameter's squares, of the update's.
  enum Sum : uint8_t { kRows, kParam, kUpdate, kSums };
  /// A part's: mean of its rows' moments, rate, rate over the clip.
  enum Scalar : uint8_t { kRowMean, kRate, kStepRate, kScalars };
  [[nodiscard]] double* sums(std::byte* workspace, int64_t tile) const {
    return reinterpret_cast<double*>(workspace) + tile * kSums;
  }
  [[nodiscard]] double* scalars(std::byte* workspace, int64_t p) const {
    return sums(workspace, num_tiles_) + p * kScalars;
  }
  [[nodiscard]] float* col_factors(std::byte* workspace, int64_t p) const {
    return reinterpret_cast<float*>(scalars(workspace, num_parts_)) + p * cols_;
  }
  [[nodiscard]] float* col_sums(std::byte* workspace, int64_t tile) const {
    return col_factors(workspace, num_parts_) + tile * cols_;
  }
  [[nodiscard]] int64_t bytes() const {
    const int64_t doubles = num_tiles_ * kSums + num_parts_ * kScalars;
    return doubles * 8 + (is_factored_ ? (num_parts_ + num_tiles_) * cols_ * 4 : 0);
  }

 private:
  int64_t cols_, num_parts_, num_tiles_ = 0;
  const std::vector<int64_t>& parts_;
  bool is_factored_;
};

}  // namespace plimsoll::cpu
