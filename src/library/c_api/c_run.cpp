// Whole runs.
#include <string>

#include "library/attributes.h"
#include "library/c_api/border.h"
#include "library/runs.h"

using namespace plimsoll;           // NOLINT: the interface has no namespace
using namespace plimsoll::library;  // NOLINT

namespace {

OnEvent listener(pls_on_event on_event, void* user) {
  if (on_event == nullptr) return {};
  return [on_event, user](const std::string& event) { return on_event(event.c_str(), user) != 0; };
}

/// The numbers of a run's error.
ErrorNumbers numbers_of(const Status& done, const RunText& run, settings::RunUse use) {
  if (done || done.error().code != ErrorCode::kDoesNotFit) return {};
  const auto shortfall = shortfall_of(run, use);
  if (!shortfall || !*shortfall) return {};
  return does_not_fit_numbers((*shortfall)->least_bytes, (*shortfall)->budget_bytes);
}

}  // namespace

int pls_train(const char* run_file, const char* settings, const char* const* overrides, size_t num_overrides,
              const char* options, pls_on_event on_event, void* user, pls_error** error) {
  ErrorNumbers numbers;
  const auto train = [&]() -> Status {
    static constexpr AttributeSpec kSpecs[] = {{"resume", R"("auto")"}};
    PLIMSOLL_ASSIGN(Attributes given, Attributes::read("train", text_of(options), kSpecs));
    const std::string resume = given.text("resume");
    PLIMSOLL_TRY(given.status());
    PLIMSOLL_ASSIGN(const RunText run, run_text(run_file, settings, overrides, num_overrides));
    Status done = train_run(run, resume, listener(on_event, user));
    numbers = numbers_of(done, run, settings::RunUse::kTraining);
    return done;
  };
  return guarded(error, train, numbers);
}

int pls_evaluate(const char* run_file, const char* settings, const char* const* overrides,
                 size_t num_overrides, pls_on_event on_event, void* user, pls_error** error) {
  ErrorNumbers numbers;
  const auto evaluate = [&]() -> Status {
    PLIMSOLL_ASSIGN(const RunText run, run_text(run_file, settings, overrides, num_overrides));
    Status done = evaluate_run(run, listener(on_event, user));
    numbers = numbers_of(done, run, settings::RunUse::kEvaluation);
    return done;
  };
  return guarded(error, evaluate, numbers);
}

int pls_generate(const char* request, pls_on_event on_event, void* user, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(request);
    return generate_texts(request, listener(on_event, user));
  });
}
