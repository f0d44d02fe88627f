// Attention of a packed projection and its gradient, with operands drawn for a test's case: of a `Case` that
// has the sizes, masks and dropout that are read here.
#pragma once

#include <cmath>
#include <ostream>
#include <random>
#include <vector>

#include "backends/cpu/op_run.h"

namespace plimsoll::cpu::fixtures {

struct PackedCase {
  int64_t batch, tokens, heads, kv_heads, head_dim;
  bool causal = true;
  int64_t window = 0;
  int64_t document = 0;  ///< mean length; 0: one
  double dropout = -1;   ///< below 0: none
  double scale = 0.2;    ///< not of tf32's, which take it from head_dim
};

inline void PrintTo(const PackedCase& c, std::ostream* out) {
  *out << "B" << c.batch << " T" << c.tokens << " H" << c.heads << "/" << c.kv_heads << " D" << c.head_dim
       << (c.causal ? " causal" : " full") << " window " << c.window << " documents " << c.document
       << " dropout " << c.dropout << " scale " << c.scale;
}

/// The first token of each token's document, of documents of the mean length c.document; 0: absent.
template <typename Case>
Tensor document_starts(const Case& c) {
  if (c.document == 0) return absent();
  std::mt19937 random(5);
  std::vector<int32_t> starts;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int32_t t = 0, start = 0; t < c.tokens; ++t) {
      if (static_cast<int64_t>(random()) % c.document == 0) start = t;
      starts.push_back(start);
    }
  return ints({c.batch, c.tokens}, starts);
}

struct PackedProblem {
  Attrs attrs;
  Tensor qkv, dout, doc_start, random = absent();

  template <typename Case>
  PackedProblem(const Case& c, ir::DType dtype, double scale)
      : attrs{{"heads", c.heads}, {"kv_heads", c.kv_heads}, {"head_dim", c.head_dim},
              {"scale", scale},   {"causal", c.causal},     {"window", c.window}},
        qkv(stored(dtype, normal({c.batch, c.tokens, (c.heads + 2 * c.kv_heads) * c.head_dim}, 1))),
        dout(stored(dtype, normal({c.batch, c.tokens, c.heads * c.head_dim}, 2))),
        doc_start(document_starts(c)) {
    if (c.dropout < 0) return;
    attrs.set("p", c.dropout);
    attrs.set("key", int64_t{77});
    random = ints({4}, {5, -6, 7, 8});
  }
  [[nodiscard]] OpRun forward() const { return {"attention_packed", {qkv, doc_start, random}, attrs}; }
  [[nodiscard]] OpRun backward(const std::vector<Tensor>& y) const {
    return {"attention_packed_grad", {qkv, y[0], y[1], dout, doc_start, random}, attrs};
  }

 private:
  static Tensor stored(ir::DType dtype, const Tensor& t) {
    return dtype == ir::DType::kF32 ? t : as(dtype, t);
  }
};

/// In norm, relative to the expected.
inline double distance(const Tensor& got, const ir::RefTensor& expected) {
  double squares = 0, of_difference = 0;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    squares += expected.data[i] * expected.data[i];
    of_difference += (got.value(i) - expected.data[i]) * (got.value(i) - expected.data[i]);
  }
  return std::sqrt(of_difference) / std::sqrt(squares);
}

}  // namespace plimsoll::cpu::fixtures
