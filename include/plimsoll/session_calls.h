// The calls of a Session into the library.
#pragma once

#include "plimsoll/session.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {
namespace detail {

struct FreeBatch {
  void operator()(pls_batch* batch) const { pls_batch_free(batch); }
};
using BatchHandle = std::unique_ptr<pls_batch, FreeBatch>;

/// The library's form of a batch of one or several parts.
inline Result<BatchHandle> batch_handle(std::span<const Batch> parts) {
  pls_batch* made = nullptr;
  if (Status status = call([&](pls_error** error) { return pls_batch_create(&made, error); }); !status)
    return status.error();
  BatchHandle handle(made);
  for (size_t part = 0; part < parts.size(); ++part) {
    for (const auto& [name, array] : parts[part].entries()) {
      const int64_t wanted = elements_of(array.shape) * dtype_bytes(array.dtype);
      if (array.bytes && *array.bytes != static_cast<size_t>(wanted))
        return Error(ErrorKind::invalid_argument,
                     "batch[\"" + name + "\"]: its values are " + std::to_string(*array.bytes) +
                         " bytes, and its shape takes " + std::to_string(wanted));
      const Status status = call([&, &name = name, &array = array](pls_error** error) {
        return pls_batch_set(made, static_cast<int64_t>(part), name.c_str(), dtype_name(array.dtype),
                             array.shape.data(), static_cast<int>(array.shape.size()), nullptr, array.data,
                             error);
      });
      if (!status) return status.error();
    }
  }
  return handle;
}

}  // namespace detail

inline Result<Session> Session::create(const Plan& plan, const SessionOptions& options) {
  pls_session* made = nullptr;
  const std::string seed = detail::Json().set("seed", options.seed).text();
  Status status = detail::call(
      [&](pls_error** error) { return pls_session_create(plan.handle(), seed.c_str(), &made, error); });
  if (!status) return status.error();
  Session session(plan, made);
  struct stat found = {};
  if (!options.resume.empty() && ::stat(options.resume.c_str(), &found) == 0) {
    status = session.load_folder(options.resume);
    if (!status) return status.error();
  }
  return session;
}

inline Returned<Session> Session::open(const Plan& plan, const SessionOptions& options) {
  return detail::returned(create(plan, options));
}

inline Result<Step> Session::run_step(std::span<const Batch> parts, const StepOptions& options) {
  const Result<detail::BatchHandle> batch = detail::batch_handle(parts);
  if (!batch) return batch.error();
  int64_t index = 0;
  double results[PLS_STEP_RESULTS] = {};
  const double rate = options.lr.value_or(std::numeric_limits<double>::quiet_NaN());
  const Status status = detail::call([&](pls_error** error) {
    return pls_session_step(session_.get(), batch->get(), rate, options.accumulate, &index, results,
                            PLS_STEP_RESULTS, error);
  });
  if (!status) return status.error();
  return Step{.index = index,
              .loss = results[PLS_STEP_LOSS],
              .grad_norm = results[PLS_STEP_GRAD_NORM],
              .seconds = results[PLS_STEP_SECONDS],
              .lr = results[PLS_STEP_LEARNING_RATE],
              .loss_scale = results[PLS_STEP_LOSS_SCALE],
              .skipped = results[PLS_STEP_SKIPPED] != 0};
}

inline Returned<double> Session::evaluate(const Batch& batch) {
  double loss = 0;
  const auto run = [&]() -> Result<double> {
    const Result<detail::BatchHandle> handle = detail::batch_handle(std::span<const Batch>(&batch, 1));
    if (!handle) return handle.error();
    const Status status = detail::call(
        [&](pls_error** error) { return pls_session_evaluate(session_.get(), handle->get(), &loss, error); });
    return status ? Result<double>(loss) : Result<double>(status.error());
  };
  return detail::returned(run());
}

inline Result<std::vector<float>> Session::read_tensor(const char* what, const std::string& name) const {
  std::vector<float> values;  // stays empty for an unknown name, of which the library says more
  for (const ParameterInfo& parameter : plan_.parameters())
    if (parameter.name == name) values.resize(static_cast<size_t>(detail::elements_of(parameter.shape)));
  float none = 0;
  float* const data = values.empty() ? &none : values.data();
  const Status status = detail::call([&](pls_error** error) {
    return pls_session_read(session_.get(), what, name.c_str(), data, static_cast<int64_t>(values.size()),
                            error);
  });
  if (!status) return status.error();
  return values;
}

inline Returned<std::map<std::string, std::vector<float>>> Session::gradients(const Batch& batch,
                                                                              int64_t accumulate) {
  using ByName = std::map<std::string, std::vector<float>>;
  const auto run = [&]() -> Result<ByName> {
    const Result<detail::BatchHandle> handle = detail::batch_handle(std::span<const Batch>(&batch, 1));
    if (!handle) return handle.error();
    const Status status = detail::call([&](pls_error** error) {
      return pls_session_gradients(session_.get(), handle->get(), accumulate, nullptr, error);
    });
    if (!status) return status.error();
    ByName all;
    for (const ParameterInfo& parameter : plan_.parameters()) {
      if (!parameter.is_trained) continue;
      Result<std::vector<float>> values = read_tensor("gradient", parameter.name);
      if (!values) return values.error();
      all[parameter.name] = *std::move(values);
    }
    return all;
  };
  return detail::returned(run());
}

inline std::vector<std::string> Session::names() const {
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : plan_.parameters()) names.push_back(parameter.name);
  return names;
}

inline ReturnedNothing Session::save(const std::string& folder, const LoaderState& loader) {
  const std::string state = loader.json();
  return detail::returned(detail::call([&](pls_error** error) {
    return pls_session_save(session_.get(), folder.c_str(), loader == LoaderState{} ? nullptr : state.c_str(),
                            error);
  }));
}

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
