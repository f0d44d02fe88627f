#include "library/c_api/border.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/process_memory.h"
#include "base/thread.h"
#include "library/c_api/handles.h"
#include "library/c_model.h"
#include "sanitizer.h"

namespace plimsoll::library {
namespace {

using testing::CBatch;
using testing::CBuilder;
using testing::CPlan;
using testing::CSession;
using testing::numbers;

void linear_model(CBuilder& b) {
  const pls_value x = b.input("x", "float32", {6, 5}), y = b.input("y", "float32", {6, 3});
  const pls_value w = b.parameter("w", {3, 5}, R"({"init": "uniform", "bound": 0.5})");
  b.loss(b.op("mse", {b.op("linear", {x, w}), y}));
}
CBatch& fill(CBatch& batch) {
  return batch.set("x", {6, 5}, numbers(30, 1)).set("y", {6, 3}, numbers(18, 2));
}

constexpr const char* kTwoThreads = R"({"training": {"optimizer": "sgd"}, "runtime": {"threads": 2}})";

TEST(Border, ABugBecomesAnErrorAndPoisonsTheSession) {
  be_library();
  pls_error* error = nullptr;
  const int code = guarded(&error, []() -> Status { PLIMSOLL_FAIL("made for this test"); });
  const testing::Failure failed = testing::failure(code, error);
  EXPECT_EQ(failed.code, PLS_INTERNAL);
  EXPECT_NE(failed.message.find("made for this test"), std::string::npos);
  EXPECT_EQ(failed.json.find("kind")->text, "internal");
  CBuilder b;
  linear_model(b);
  const CPlan plan(b, kTwoThreads);
  CSession session(plan);
  session.get()->poison = Error{ErrorCode::kInternal, "the first bug"};
  CBatch batch;
  fill(batch);
  session.step(batch);
  EXPECT_EQ(session.failed.code, PLS_INTERNAL);
  EXPECT_NE(session.failed.message.find("the first bug"), std::string::npos);
}

TEST(Border, NullIsRefused) {
  pls_error* error = nullptr;
  EXPECT_EQ(testing::failure(pls_builder_create(nullptr, &error), error).code, PLS_INVALID_ARGUMENT);
  EXPECT_EQ(pls_builder_create(nullptr, nullptr), PLS_INVALID_ARGUMENT);
  error = nullptr;
  EXPECT_EQ(
      testing::failure(pls_session_step(nullptr, nullptr, 0, 1, nullptr, nullptr, 0, &error), error).code,
      PLS_INVALID_ARGUMENT);
  pls_session_free(nullptr);
  pls_plan_free(nullptr);
  pls_batch_free(nullptr);
  pls_builder_free(nullptr);
  pls_error_free(nullptr);
}

TEST(Border, AfterForkASessionIsRefused) {
  CBuilder b;
  linear_model(b);
  const CPlan plan(b, kTwoThreads);
  CSession session(plan);
  CBatch batch;
  fill(batch);
  session.step(batch);
  const pid_t child = ::fork();
  if (child == 0) {
    pls_error* error = nullptr;
    const int code = pls_session_step(session.get(), batch.get(), 0.1, 1, nullptr, nullptr, 0, &error);
    const bool says =
        code == PLS_INTERNAL && std::string(pls_error_message(error)).find("fork") != std::string::npos;
    pls_session_free(session.get());  // does not wait for threads that are not there
    ::_exit(says ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  session.step(batch);
  EXPECT_EQ(session.failed.code, PLS_OK);
}

TEST(Border, TwoThreadsHaveSessionsOfTheirOwn) {
  CBuilder b;
  linear_model(b);
  const CPlan plan(b, kTwoThreads);
  std::vector<float> results[2];
  const auto train = [&](size_t index) {
    CBuilder own;
    linear_model(own);
    const CPlan its(own, kTwoThreads);
    CSession session(its);
    CBatch batch;
    fill(batch);
    for (int i = 0; i < 20; ++i) session.step(batch);
    results[index] = session.read("w", 15);
  };
  std::thread one(train, 0), two(train, 1);
  one.join();
  two.join();
  EXPECT_EQ(results[0], results[1]);
  EXPECT_FALSE(results[0].empty());
}

TEST(Border, NoThreadOutlivesTheLastSession) {
  const int before = Thread::num_running();
  {
    CBuilder b;
    linear_model(b);
    const CPlan plan(b, kTwoThreads);
    EXPECT_EQ(Thread::num_running(), before);
    CSession session(plan);
    EXPECT_GT(Thread::num_running(), before);
  }
  EXPECT_EQ(Thread::num_running(), before);
}

TEST(Border, SessionsLeaveNoMemoryBehind) {
  CBuilder b;
  linear_model(b);
  const CPlan plan(b, kTwoThreads);
  CBatch batch;
  fill(batch);
  const auto open_and_close = [&](int count) {
    for (int i = 0; i < count; ++i) {
      CSession session(plan);
      session.step(batch);
    }
  };
  open_and_close(50);
  const int64_t before = resident_bytes();
  open_and_close(500);
  if (!kSanitizer) {  // whose malloc keeps what is freed
    EXPECT_LE(resident_bytes() - before, int64_t{1} << 19);
  }
}

TEST(Border, OrdersAreThoseOfTheProgram) {
  std::vector<int64_t> order(10), part(4);
  pls_error* error = nullptr;
  testing::ok(pls_order(7, 2, 10, 0, 10, order.data(), &error), error);
  testing::ok(pls_order(7, 2, 10, 3, 4, part.data(), &error), error);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), order.begin() + 3));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(testing::failure(pls_order(7, 2, 10, 8, 4, part.data(), &error), error).code,
            PLS_INVALID_ARGUMENT);
}

TEST(Border, KnowsItsOps) {
  const auto ops = io::parse_json(pls_ops());
  ASSERT_TRUE(ops);
  EXPECT_GT(ops->items.size(), 50U);
  EXPECT_STREQ(pls_version(), "0.1.0");
  EXPECT_EQ(pls_abi_version(), PLS_ABI_VERSION);
}

}  // namespace
}  // namespace plimsoll::library
