#include "library/batch.h"

#include <gtest/gtest.h>

#include <limits>

#include "library/c_api/dlpack.h"
#include "library/c_model.h"

namespace plimsoll::library {
namespace {

using testing::CBatch;
using testing::CBuilder;
using testing::CPlan;
using testing::CSession;
using testing::numbers;

constexpr const char* kMatrix = R"({"init": "uniform", "bound": 0.5})";

/// Rows of a table, a linear map, labels of three classes.
class Batches : public ::testing::Test {
 protected:
  void SetUp() override {
    const pls_value ids = builder_.input("ids", "int64", {4, 2}), x = builder_.input("x", "float32", {4, 5}),
                    labels = builder_.input("labels", "int64", {4});
    const pls_value rows = builder_.op("embedding", {builder_.parameter("table", {7, 5}, kMatrix), ids});
    const pls_value sum = builder_.op("add", {builder_.op("mean", {rows}, R"({"axes": [1]})"), x});
    builder_.loss(builder_.op(
        "cross_entropy", {builder_.op("linear", {sum, builder_.parameter("w", {3, 5}, kMatrix)}), labels}));
    plan_ = std::make_unique<CPlan>(builder_, R"({"training": {"optimizer": "sgd", "learning_rate": 0.1}})");
    ASSERT_EQ(plan_->failed.code, PLS_OK) << plan_->failed.message;
    session_ = std::make_unique<CSession>(*plan_);
  }
  CBatch& good(CBatch& batch) {
    return batch.set("ids", {4, 2}, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 0})
        .set("x", {4, 5}, numbers(20, 1))
        .set("labels", {4}, std::vector<int32_t>{0, 2, -100, 1});
  }
  void refused(const CBatch& batch, int code, const char* key, const char* words = "") {
    const std::vector<float> before = session_->read("w", 15);
    session_->step(batch);
    EXPECT_EQ(session_->failed.code, code) << session_->failed.message;
    EXPECT_NE(session_->failed.message.find(key), std::string::npos) << session_->failed.message;
    EXPECT_NE((session_->failed.message + session_->failed.hint).find(words), std::string::npos)
        << session_->failed.message << session_->failed.hint;
    EXPECT_EQ(session_->read("w", 15), before);
  }

  CBuilder builder_;
  std::unique_ptr<CPlan> plan_;
  std::unique_ptr<CSession> session_;
};

TEST_F(Batches, ConvertsWhatLosesNothing) {
  CBatch plain, wide;
  good(plain);
  const std::vector<float> x = numbers(20, 1);
  good(wide)
      .set_as("ids", "int64", {4, 2}, std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 0})
      .set_as("x", "float64", {4, 5}, std::vector<double>(x.begin(), x.end()))
      .set_as("labels", "int16", {4}, std::vector<int16_t>{0, 2, -100, 1});
  const double loss = session_->evaluate(plain);
  ASSERT_EQ(session_->failed.code, PLS_OK) << session_->failed.message;
  EXPECT_EQ(session_->evaluate(wide), loss);
}

TEST_F(Batches, TakesStridedArrays) {
  CBatch plain, turned;
  good(plain);
  good(turned);
  const std::vector<float> x = numbers(20, 1);
  std::vector<float> columns(20);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 5; ++j) columns[j * 4 + i] = x[i * 5 + j];
  const int64_t shape[] = {4, 5}, strides[] = {1, 4};
  pls_error* error = nullptr;
  testing::ok(pls_batch_set(turned.get(), 0, "x", "float32", shape, 2, strides, columns.data(), &error),
              error);
  EXPECT_EQ(session_->evaluate(turned), session_->evaluate(plain));
}

TEST_F(Batches, RefusesWithTheKey) {
  CBatch missing, unknown, shape, type, parts;
  missing.set("x", {4, 5}, numbers(20, 1)).set("labels", {4}, std::vector<int32_t>(4));
  refused(missing, PLS_INVALID_ARGUMENT, "ids", "missing");
  good(unknown).set("lables", {4}, std::vector<int32_t>(4));
  refused(unknown, PLS_INVALID_ARGUMENT, "lables", "labels");
  good(shape).set("x", {4, 6}, numbers(24, 1));
  refused(shape, PLS_INVALID_ARGUMENT, "[4, 6]", "[4, 5]");
  good(type).set("ids", {4, 2}, numbers(8, 1));
  refused(type, PLS_INVALID_ARGUMENT, "ids", "int32");
  good(parts);
  session_->step(parts, 0.1, 2);
  EXPECT_EQ(session_->failed.code, PLS_INVALID_ARGUMENT);
  session_->step(parts, 0.1, 0);
  EXPECT_EQ(session_->failed.code, PLS_INVALID_ARGUMENT);
}

/// Before anything is taken for them: the session goes on afterwards.
TEST_F(Batches, RefusesSizesThatNoArrayHas) {
  CBatch batch;
  good(batch);
  for (const int64_t parts : {int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
    session_->step(batch, 0.1, parts);
    EXPECT_EQ(session_->failed.code, PLS_INVALID_ARGUMENT) << session_->failed.message;
  }
  pls_error* error = nullptr;
  const float value = 0;
  const int64_t shape[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(testing::failure(pls_batch_set(batch.get(), 0, "x", "float32", shape, 2, nullptr, &value, &error),
                             error)
                .code,
            PLS_INVALID_ARGUMENT);
  const int64_t last = std::numeric_limits<int64_t>::max(), one = 1;
  EXPECT_EQ(testing::failure(
                pls_batch_set(batch.get(), last, "x", "float32", &one, 1, nullptr, &value, &error), error)
                .code,
            PLS_INVALID_ARGUMENT);
  session_->step(batch);
  EXPECT_EQ(session_->failed.code, PLS_OK) << session_->failed.message;
}

TEST_F(Batches, TakesTensorsOfDlpack) {
  CBatch plain, shared;
  good(plain);
  good(shared);
  std::vector<float> x = numbers(20, 1);
  int64_t shape[] = {4, 5};
  DlTensor tensor{x.data(), 1, 0, 2, 2, 32, 1, shape, nullptr, 0};
  pls_error* error = nullptr;
  const auto set = [&] { return pls_batch_set_dlpack(shared.get(), 0, "x", &tensor, &error); };
  testing::ok(set(), error);
  EXPECT_EQ(session_->evaluate(shared), session_->evaluate(plain));
  tensor.shape = nullptr;
  EXPECT_EQ(testing::failure(set(), error).code, PLS_INVALID_ARGUMENT);
  tensor = {nullptr, 1, 0, 2, 2, 32, 1, shape, nullptr, 8};
  EXPECT_EQ(testing::failure(set(), error).code, PLS_INVALID_ARGUMENT);
  tensor = {x.data(), 2, 0, 2, 2, 32, 1, shape, nullptr, 0};
  EXPECT_EQ(testing::failure(set(), error).code, PLS_INVALID_ARGUMENT);
}

TEST_F(Batches, RefusesWhatIsOutOfRange) {
  CBatch ids, labels, wide;
  good(ids).set("ids", {4, 2}, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 7, 0});
  refused(ids, PLS_BAD_DATA, "ids", "7");
  good(labels).set("labels", {4}, std::vector<int32_t>{0, 3, -100, 1});
  refused(labels, PLS_BAD_DATA, "labels", "3");
  good(wide).set_as("labels", "int64", {4}, std::vector<int64_t>{0, int64_t{1} << 32, -100, 1});
  refused(wide, PLS_BAD_DATA, "labels");
}

TEST_F(Batches, WithoutALabelThatCountsNothingIsLearnt) {
  CBatch batch;
  good(batch).set("labels", {4}, std::vector<int32_t>(4, -100));
  const std::vector<float> before = session_->read("w", 15);
  const testing::Step step = session_->step(batch);
  ASSERT_EQ(session_->failed.code, PLS_OK) << session_->failed.message;
  EXPECT_EQ(step.loss, 0);
  EXPECT_EQ(session_->read("w", 15), before);
}

}  // namespace
}  // namespace plimsoll::library
