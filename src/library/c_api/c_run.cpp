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

}  // namespace

int pls_train(const char* run_file, const char* settings, const char* const* overrides, size_t num_overrides,
              const char* options, pls_on_event on_event, void* user, pls_error** error) {
  return guarded(error, [&]() -> Status {
    static constexpr AttributeSpec kSpecs[] = {{"resume", R"("auto")"}};
    PLIMSOLL_ASSIGN(Attributes given, Attributes::read("train", text_of(options), kSpecs));
    const std::string resume = given.text("resume");
    PLIMSOLL_TRY(given.status());
    PLIMSOLL_ASSIGN(const RunText run, run_text(run_file, settings, overrides, num_overrides));
    return train_run(run, resume, listener(on_event, user));
  });
}

int pls_evaluate(const char* run_file, const char* settings, const char* const* overrides,
                 size_t num_overrides, pls_on_event on_event, void* user, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLIMSOLL_ASSIGN(const RunText run, run_text(run_file, settings, overrides, num_overrides));
    return evaluate_run(run, listener(on_event, user));
  });
}

int pls_generate(const char* request, pls_on_event on_event, void* user, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(request);
    return generate_texts(request, listener(on_event, user));
  });
}
