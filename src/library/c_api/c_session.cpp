// Batches and sessions.
#include <unistd.h>

#include <cmath>
#include <span>
#include <string>

#include "library/attributes.h"
#include "library/c_api/border.h"
#include "library/c_api/dlpack.h"
#include "library/c_api/handles.h"
#include "library/session_files.h"

using namespace plimsoll;           // NOLINT: the interface has no namespace
using namespace plimsoll::library;  // NOLINT

namespace {

/// body(session), a Status, on a session that is whole and this process's. A bug poisons it.
template <typename Body>
int call(pls_session* handle, pls_error** error, Body&& body) noexcept {
  return guarded(error, [&]() -> Status {
    if (handle == nullptr) return null_argument("session");
    if (handle->process != ::getpid())
      return Error{ErrorCode::kInternal,
                   "the session was made before fork",
                   {},
                   "make the session in the process that uses it"};
    const std::lock_guard lock(handle->mutex);
    if (handle->poison) return *handle->poison;
    Status done = [&]() -> Status {
      try {
        return body(*handle->session);
      } catch (...) {
        return thrown_error();
      }
    }();
    if (!done && done.error().code == ErrorCode::kInternal) handle->poison = done.error();
    return done;
  });
}

Result<Array> array_of(const char* dtype, const int64_t* shape, int rank, const int64_t* strides,
                       const void* data) {
  const auto type = parse_element_type(text_of(dtype));
  if (!type || rank < 0 || rank > PLS_MAX_RANK || (rank > 0 && shape == nullptr))
    return Error{ErrorCode::kInvalidArgument, "an array of type '" + std::string(text_of(dtype)) + "' and " +
                                                  std::to_string(rank) + " axes"};
  Array array{*type, {shape, shape + rank}, {}, static_cast<const std::byte*>(data)};
  if (strides != nullptr) array.strides.assign(strides, strides + rank);
  return array;
}

Result<int64_t> seed_of(const char* options) {
  static constexpr AttributeSpec kSpecs[] = {{"seed", "0"}};
  PLIMSOLL_ASSIGN(Attributes given, Attributes::read("session", text_of(options), kSpecs));
  const int64_t seed = given.integer("seed");
  PLIMSOLL_TRY(given.status());
  return seed;
}

}  // namespace

int pls_batch_create(pls_batch** batch, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(batch);
    *batch = new pls_batch;
    return Ok{};
  });
}

void pls_batch_free(pls_batch* batch) { delete batch; }

void pls_batch_clear(pls_batch* batch) {
  if (batch != nullptr) batch->batch.clear();
}

int pls_batch_set(pls_batch* batch, int64_t part, const char* name, const char* dtype, const int64_t* shape,
                  int rank, const int64_t* strides, const void* data, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(batch);
    auto array = array_of(dtype, shape, rank, strides, data);
    const std::string key(text_of(name));
    if (!array) return std::move(array).error().at("batch[\"" + key + "\"]");
    return batch->batch.set(part, key, std::move(*array));
  });
}

int pls_batch_set_dlpack(pls_batch* batch, int64_t part, const char* name, const void* tensor,
                         pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(batch);
    PLS_NEEDS(tensor);
    const std::string key(text_of(name));
    auto array = array_of_dlpack(tensor);
    if (!array) return std::move(array).error().at("batch[\"" + key + "\"]");
    return batch->batch.set(part, key, std::move(*array));
  });
}

int pls_session_create(pls_plan* plan, const char* options, pls_session** session, pls_error** error) {
  ErrorNumbers numbers;
  const auto create = [&]() -> Status {
    PLS_NEEDS(plan);
    PLS_NEEDS(session);
    if (!plan->own)
      return Error{ErrorCode::kInvalidArgument, "the plan is a run's: train it, or plan a model of your own"};
    if (!plan->own->fits()) {
      numbers = does_not_fit_numbers(plan->own->least_bytes(), plan->own->report().budget_bytes);
      return plan->own->does_not_fit();
    }
    PLIMSOLL_ASSIGN(const int64_t seed, seed_of(options));
    auto handle = std::make_unique<pls_session>();
    handle->process = ::getpid();
    PLIMSOLL_ASSIGN(handle->session, OwnSession::create(plan->own, seed));
    *session = handle.release();
    return Ok{};
  };
  return guarded(error, create, numbers);
}

/// Threads are not there after fork: what belongs to them is left where it is.
void pls_session_free(pls_session* session) {
  if (session == nullptr) return;
  if (session->process != ::getpid()) return;
  delete session;
}

int pls_session_step(pls_session* session, const pls_batch* batch, double learning_rate, int64_t accumulate,
                     int64_t* index, double* results, size_t num_results, pls_error** error) {
  return call(session, error, [&](OwnSession& own) -> Status {
    PLS_NEEDS(batch);
    const std::optional<double> rate =
        std::isnan(learning_rate) ? std::nullopt : std::optional(learning_rate);
    PLIMSOLL_ASSIGN(const OwnStep step, own.step(batch->batch, rate, accumulate));
    if (index != nullptr) *index = step.index;
    const double all[PLS_STEP_RESULTS] = {step.loss,          step.grad_norm,  step.seconds,
                                          step.learning_rate, step.loss_scale, step.skipped ? 1.0 : 0.0};
    for (size_t i = 0; results != nullptr && i < num_results; ++i)
      results[i] = i < PLS_STEP_RESULTS ? all[i] : 0.0;
    return Ok{};
  });
}

int pls_session_evaluate(pls_session* session, const pls_batch* batch, double* loss, pls_error** error) {
  return call(session, error, [&](OwnSession& own) -> Status {
    PLS_NEEDS(batch);
    PLS_NEEDS(loss);
    PLIMSOLL_ASSIGN(*loss, own.evaluate(batch->batch));
    return Ok{};
  });
}

int pls_session_gradients(pls_session* session, const pls_batch* batch, int64_t accumulate, double* loss,
                          pls_error** error) {
  return call(session, error, [&](OwnSession& own) -> Status {
    PLS_NEEDS(batch);
    PLIMSOLL_ASSIGN(const double mean, own.gradients(batch->batch, accumulate));
    if (loss != nullptr) *loss = mean;
    return Ok{};
  });
}

int pls_session_read(pls_session* session, const char* what, const char* name, float* data, int64_t count,
                     pls_error** error) {
  return call(session, error, [&](OwnSession& own) -> Status {
    PLS_NEEDS(data);
    if (count < 0) return Error{ErrorCode::kInvalidArgument, "count is negative"};
    const std::span values(data, static_cast<size_t>(count));
    const std::string_view kind_of_tensor = text_of(what);
    if (kind_of_tensor == "parameter") return own.read(text_of(name), values);
    if (kind_of_tensor == "gradient") return own.read_gradient(text_of(name), values);
    return Error{ErrorCode::kInvalidArgument,
                 "'" + std::string(kind_of_tensor) + "' cannot be read",
                 {},
                 "choose parameter or gradient"};
  });
}

int pls_session_write(pls_session* session, const char* name, const float* data, int64_t count,
                      pls_error** error) {
  return call(session, error, [&](OwnSession& own) -> Status {
    PLS_NEEDS(data);
    if (count < 0) return Error{ErrorCode::kInvalidArgument, "count is negative"};
    return own.write(text_of(name), {data, static_cast<size_t>(count)});
  });
}

int pls_session_view(pls_session* session, const char* name, const float** data, int64_t* count,
                     pls_error** error) {
  return call(session, error, [&](OwnSession& own) -> Status {
    PLS_NEEDS(data);
    PLIMSOLL_ASSIGN(const std::span<const float> values, own.view(text_of(name)));
    *data = values.data();
    if (count != nullptr) *count = std::ssize(values);
    return Ok{};
  });
}

int64_t pls_session_steps(const pls_session* session) {
  return session == nullptr || session->process != ::getpid() ? 0 : session->session->counters().steps;
}

const char* pls_session_json(pls_session* session) {
  if (session == nullptr) return "{}";
  const int code = call(session, nullptr, [&](OwnSession& own) -> Status {
    io::Tree tree = io::Tree::map();
    tree.set("steps", io::Tree::of(own.counters().steps));
    tree.set("skipped", io::Tree::of(own.counters().skipped));
    tree.set("seed", io::Tree::of(own.seed()));
    tree.set("loss_scale", io::Tree::of(own.loss_scale()));
    tree.set("peak_bytes", io::Tree::of(own.plan().peak_bytes()));
    const std::string text = io::to_json(tree);
    session->json = text.substr(0, text.size() - 1) + ", \"host\": " + session->host_state + "}";
    return Ok{};
  });
  return code == PLS_OK ? session->json.c_str() : "{}";
}

int pls_session_save(pls_session* session, const char* folder, const char* host_state, pls_error** error) {
  return call(session, error, [&](OwnSession& own) -> Status {
    PLS_NEEDS(folder);
    const std::string_view host = text_of(host_state);
    PLIMSOLL_TRY(save_session(own, folder, host));
    session->host_state = host.empty() ? "null" : host;
    return Ok{};
  });
}

int pls_session_load(pls_session* session, const char* folder, pls_error** error) {
  return call(session, error, [&](OwnSession& own) -> Status {
    PLS_NEEDS(folder);
    PLIMSOLL_ASSIGN(session->host_state, load_session(own, folder));
    return Ok{};
  });
}
