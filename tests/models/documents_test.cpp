// Documents packed into one sequence: what each family computes for them is what it computes for each alone.
#include "forward.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

class Documents : public testing::TestWithParam<const Family*> {};

TEST_P(Documents, PackedAreAsEachAlone) {
  const auto model = model_of(std::string(GetParam()->sample));
  const std::vector<int64_t> lengths[] = {{17, 1, 46, 6}, {64, 6}};  // the 6 are padding, one document each
  const int64_t length = 70, vocab = model->vocab_size();
  const std::vector<int32_t> tokens = some_tokens(*model, 2, length);
  std::vector<int32_t> starts;
  for (const auto& row : lengths) {
    for (size_t d = 0; d + 1 < row.size(); ++d)
      starts.insert(starts.end(), static_cast<size_t>(row[d]), static_cast<int32_t>(starts.size() % length));
    while (starts.size() % length != 0) starts.push_back(static_cast<int32_t>(starts.size() % length));
  }
  const std::vector<double> packed = interpret(*model, 2, length, tokens, starts);
  const std::vector<float> computed = CpuForward(*model, 2, length, true, true)(tokens, starts);
  int64_t row_begin = 0;
  for (const auto& row : lengths) {
    int64_t begin = row_begin;
    for (size_t d = 0; d + 1 < row.size(); ++d) {
      const std::vector<int32_t> alone(tokens.begin() + begin, tokens.begin() + begin + row[d]);
      const std::vector<double> expected = interpret(*model, 1, row[d], alone);
      double difference = 0, norm = 0;
      for (int64_t i = 0; i < row[d] * vocab; ++i) {
        const auto at = static_cast<size_t>(begin * vocab + i);
        ASSERT_NEAR(packed[at], expected[static_cast<size_t>(i)], 1e-11) << "token " << i / vocab;
        difference += std::pow(computed[at] - expected[static_cast<size_t>(i)], 2);
        norm += std::pow(expected[static_cast<size_t>(i)], 2);
      }
      EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(norm)) << "document " << d;
      begin += row[d];
    }
    row_begin += length;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Documents, testing::ValuesIn([] {
                           std::vector<const Family*> list;
                           for (const auto family : kLanguageFamilies) list.push_back(&family());
                           return list;
                         }()),
                         [](const auto& test) { return std::string(test.param->model_type); });

}  // namespace
}  // namespace plimsoll::models
