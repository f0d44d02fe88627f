// What adapters put beside an embedding, against the references and continued over micro-batches.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(EmbeddingAdapters, AgainstReference) {
  const Tensor ids = indices({2, 300}, 40, 1), dy = normal({2, 300, 5}, 2);
  const Attrs columns{{"columns", int64_t{40}}}, padded{{"columns", int64_t{40}}, {"padding", int64_t{7}}};
  expect_op({"embedding_columns", {normal({5, 40}, 3), ids}}, 0);
  expect_op({"embedding_columns_grad", {dy, ids}, columns}, 2e-6);
  expect_op({"embedding_columns_grad", {dy, ids, normal({5, 40}, 4)}, padded}, 2e-6);
  const Attrs tokens{{"tokens", std::vector<int64_t>{2, 30}}};
  const Tensor x = normal({2, 300, 301}, 5);
  expect_op({"token_rows", {x, normal({2, 301}, 6), ids}, tokens}, 0);
  expect_op({"token_rows_grad", {x, ids}, tokens}, 2e-6);
  expect_op({"token_rows_grad", {x, ids, normal({2, 301}, 7)}, tokens}, 2e-6);
  const Attrs brief{{"columns", int64_t{40}}, {"out", std::string("bf16")}};
  expect_op({"embedding_columns_grad", {dy, ids}, brief}, 0x1p-8);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
