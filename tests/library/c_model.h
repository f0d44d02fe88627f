// Models of one's own through the C interface, for tests: what a front end does, in a few lines.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json.h"
#include "plimsoll/plimsoll_c.h"

namespace plimsoll::library::testing {

/// An error that a call gave; code PLS_OK: none.
struct Failure {
  int code = PLS_OK;
  std::string message, hint;
  io::Tree json = {};
};

/// Takes over the error of a call that returned `code`.
inline Failure failure(int code, pls_error*& error) {
  Failure result;
  result.code = code;
  if (error == nullptr) return result;
  result.message = pls_error_message(error);
  result.hint = pls_error_hint(error);
  if (auto tree = io::parse_json(pls_error_json(error))) result.json = *tree;
  EXPECT_EQ(pls_error_code(error), code);
  pls_error_free(error);
  error = nullptr;
  return result;
}

/// What a call that has to work gives as its error.
inline void ok(int code, pls_error*& error) {
  const Failure failed = failure(code, error);
  EXPECT_EQ(failed.code, PLS_OK) << failed.message << "\n" << failed.hint;
}

using Shape = std::vector<int64_t>;

class CBuilder {
 public:
  CBuilder() {
    pls_error* error = nullptr;
    ok(pls_builder_create(&builder_, &error), error);
  }
  ~CBuilder() { pls_builder_free(builder_); }
  CBuilder(const CBuilder&) = delete;
  CBuilder& operator=(const CBuilder&) = delete;

  pls_value input(const char* name, const char* dtype, const Shape& shape) {
    pls_value value = PLS_NONE;
    pls_error* error = nullptr;
    ok(pls_input(builder_, name, dtype, shape.data(), static_cast<int>(shape.size()), &value, &error), error);
    return value;
  }
  pls_value parameter(const char* name, const Shape& shape, const char* options) {
    pls_value value = PLS_NONE;
    pls_error* error = nullptr;
    ok(pls_parameter(builder_, name, shape.data(), static_cast<int>(shape.size()), options, &value, &error),
       error);
    return value;
  }
  pls_value op(const char* name, const std::vector<pls_value>& inputs, const char* attributes = nullptr) {
    pls_value value = PLS_NONE;
    pls_error* error = nullptr;
    ok(pls_op(builder_, name, inputs.data(), inputs.size(), attributes, &value, 1, &error), error);
    return value;
  }
  Failure wrong_op(const char* name, const std::vector<pls_value>& inputs, const char* attributes = nullptr) {
    pls_value value = PLS_NONE;
    pls_error* error = nullptr;
    const int code = pls_op(builder_, name, inputs.data(), inputs.size(), attributes, &value, 1, &error);
    return failure(code, error);
  }
  Shape shape(pls_value value) {
    int64_t extents[PLS_MAX_RANK] = {};
    int rank = 0;
    pls_error* error = nullptr;
    ok(pls_value_type(builder_, value, nullptr, extents, &rank, &error), error);
    return {extents, extents + rank};
  }
  void push(const char* kind, const char* argument) {
    pls_error* error = nullptr;
    ok(pls_scope_push(builder_, kind, argument, &error), error);
  }
  void pop() {
    pls_error* error = nullptr;
    ok(pls_scope_pop(builder_, &error), error);
  }
  void loss(pls_value value) {
    pls_error* error = nullptr;
    ok(pls_loss(builder_, value, &error), error);
  }
  [[nodiscard]] pls_builder* get() const { return builder_; }

 private:
  pls_builder* builder_ = nullptr;
};

class CPlan {
 public:
  CPlan(const CBuilder& builder, const std::string& settings) {
    pls_error* error = nullptr;
    const int code = pls_plan_create(builder.get(), settings.c_str(), &plan_, &error);
    failed = failure(code, error);
  }
  ~CPlan() { pls_plan_free(plan_); }
  CPlan(const CPlan&) = delete;
  CPlan& operator=(const CPlan&) = delete;

  [[nodiscard]] pls_plan* get() const { return plan_; }
  [[nodiscard]] int64_t peak() const { return pls_plan_peak_bytes(plan_); }
  [[nodiscard]] bool fits() const { return pls_plan_fits(plan_) == 1; }
  [[nodiscard]] io::Tree json() const {
    auto tree = io::parse_json(pls_plan_json(plan_));
    EXPECT_TRUE(tree);
    return tree ? *tree : io::Tree{};
  }
  Failure failed;

 private:
  pls_plan* plan_ = nullptr;
};

/// Arrays by name that own what they hold.
class CBatch {
 public:
  CBatch() {
    pls_error* error = nullptr;
    ok(pls_batch_create(&batch_, &error), error);
  }
  ~CBatch() { pls_batch_free(batch_); }
  CBatch(const CBatch&) = delete;
  CBatch& operator=(const CBatch&) = delete;

  CBatch& set(const char* name, const Shape& shape, const std::vector<float>& values, int64_t part = 0) {
    return set_as(name, "float32", shape, values, part);
  }
  CBatch& set(const char* name, const Shape& shape, const std::vector<int32_t>& values, int64_t part = 0) {
    return set_as(name, "int32", shape, values, part);
  }
  template <class T>
  CBatch& set_as(const char* name, const char* dtype, const Shape& shape, const std::vector<T>& values,
                 int64_t part = 0) {
    kept_.push_back(std::make_unique<std::vector<std::byte>>(values.size() * sizeof(T)));
    std::memcpy(kept_.back()->data(), values.data(), kept_.back()->size());
    pls_error* error = nullptr;
    ok(pls_batch_set(batch_, part, name, dtype, shape.data(), static_cast<int>(shape.size()), nullptr,
                     kept_.back()->data(), &error),
       error);
    return *this;
  }
  [[nodiscard]] pls_batch* get() const { return batch_; }

 private:
  pls_batch* batch_ = nullptr;
  std::vector<std::unique_ptr<std::vector<std::byte>>> kept_;
};

struct Step {
  int64_t index = 0;
  double loss = 0, grad_norm = 0, loss_scale = 0;
  bool skipped = false;
};

class CSession {
 public:
  explicit CSession(const CPlan& plan, const char* options = nullptr) {
    pls_error* error = nullptr;
    const int code = pls_session_create(plan.get(), options, &session_, &error);
    failed = failure(code, error);
  }
  ~CSession() { pls_session_free(session_); }
  CSession(const CSession&) = delete;
  CSession& operator=(const CSession&) = delete;

  Step step(const CBatch& batch, double rate = std::numeric_limits<double>::quiet_NaN(), int64_t parts = 1) {
    Step step;
    double results[PLS_STEP_RESULTS] = {};
    pls_error* error = nullptr;
    const int code =
        pls_session_step(session_, batch.get(), rate, parts, &step.index, results, PLS_STEP_RESULTS, &error);
    failed = failure(code, error);
    step.loss = results[PLS_STEP_LOSS];
    step.grad_norm = results[PLS_STEP_GRAD_NORM];
    step.loss_scale = results[PLS_STEP_LOSS_SCALE];
    step.skipped = results[PLS_STEP_SKIPPED] != 0;
    return step;
  }
  double evaluate(const CBatch& batch) {
    double loss = std::numeric_limits<double>::quiet_NaN();
    pls_error* error = nullptr;
    const int code = pls_session_evaluate(session_, batch.get(), &loss, &error);
    failed = failure(code, error);
    return loss;
  }
  double gradients(const CBatch& batch, int64_t parts = 1) {
    double loss = std::numeric_limits<double>::quiet_NaN();
    pls_error* error = nullptr;
    const int code = pls_session_gradients(session_, batch.get(), parts, &loss, &error);
    failed = failure(code, error);
    return loss;
  }
  std::vector<float> read(const char* name, size_t count, const char* what = "parameter") {
    std::vector<float> values(count);
    pls_error* error = nullptr;
    const int code =
        pls_session_read(session_, what, name, values.data(), static_cast<int64_t>(count), &error);
    failed = failure(code, error);
    return values;
  }
  void write(const char* name, const std::vector<float>& values) {
    pls_error* error = nullptr;
    const int code =
        pls_session_write(session_, name, values.data(), static_cast<int64_t>(values.size()), &error);
    failed = failure(code, error);
  }
  Failure save(const std::string& folder, const char* host = nullptr) {
    pls_error* error = nullptr;
    const int code = pls_session_save(session_, folder.c_str(), host, &error);
    return failed = failure(code, error);
  }
  Failure load(const std::string& folder) {
    pls_error* error = nullptr;
    const int code = pls_session_load(session_, folder.c_str(), &error);
    return failed = failure(code, error);
  }
  [[nodiscard]] pls_session* get() const { return session_; }
  Failure failed;  ///< of the last call

 private:
  pls_session* session_ = nullptr;
};

/// Numbers that look random and are the same everywhere.
inline std::vector<float> numbers(size_t count, uint32_t seed, float scale = 1) {
  std::vector<float> values(count);
  uint32_t state = seed * 2654435761U + 1;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = scale * (static_cast<float>(state >> 8) / 8388608.0F - 1.0F);
  }
  return values;
}
inline std::vector<int32_t> ids(size_t count, uint32_t seed, int32_t below) {
  std::vector<int32_t> values(count);
  uint32_t state = seed * 2654435761U + 1;
  for (int32_t& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(below));
  }
  return values;
}

/// The derivative of the loss by an element of a parameter, by central differences.
inline double slope(CSession& session, const CBatch& batch, const char* name, size_t count, size_t element,
                    float width = 1e-2F) {
  const std::vector<float> values = session.read(name, count);
  const auto loss_at = [&](float value) {
    std::vector<float> moved = values;
    moved[element] = value;
    session.write(name, moved);
    return session.evaluate(batch);
  };
  const double up = loss_at(values[element] + width), down = loss_at(values[element] - width);
  session.write(name, values);
  return (up - down) / (2.0 * static_cast<double>(width));
}

}  // namespace plimsoll::library::testing
