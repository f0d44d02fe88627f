#include "backends/cuda/card_info.h"

namespace plimsoll::cuda {
namespace {

Status started(const Driver& driver) {
  const int error = driver.init(0);
  if (error == 0) return Ok{};
  return Error{ErrorCode::kIo, error_text(driver, error), "NVIDIA's driver",
               "see whether nvidia-smi shows a card, or set runtime.device=cpu"};
}

}  // namespace

Result<int> device_of(const Driver& driver, int ordinal) {
  PLIMSOLL_TRY(started(driver));
  int count = 0, device = 0;
  if (const int error = driver.device_count(&count); error != 0)
    return Error{ErrorCode::kIo, error_text(driver, error), "counting the cards", "see what nvidia-smi says"};
  if (ordinal < 0 || ordinal >= count)
    return Error{
        ErrorCode::kInvalidArgument,
        "there is no card " + std::to_string(ordinal) + ", this machine has " + std::to_string(count),
        "runtime.device", count == 0 ? "set runtime.device=cpu" : "set runtime.device=cuda"};
  if (const int error = driver.device_get(&device, ordinal); error != 0)
    return Error{ErrorCode::kIo, error_text(driver, error), "the card " + std::to_string(ordinal),
                 "see what nvidia-smi says of it"};
  return device;
}

Result<CardInfo> describe_card(const Driver& driver, int device) {
  CardInfo card;
  char name[256] = {};
  int major = 0, minor = 0;
  size_t bytes = 0;
  int error = driver.device_name(name, sizeof name - 1, device);
  if (error == 0) error = driver.device_attribute(&major, kComputeMajor, device);
  if (error == 0) error = driver.device_attribute(&minor, kComputeMinor, device);
  if (error == 0) error = driver.device_total_memory(&bytes, device);
  if (error != 0)
    return Error{ErrorCode::kIo, error_text(driver, error), "what the card is",
                 "see what nvidia-smi says of it"};
  card.name = name;
  card.capability = 10 * major + minor;
  card.memory = Bytes(static_cast<int64_t>(bytes));
  return card;
}

Result<CardInfo> card_info(int ordinal) {
  PLIMSOLL_ASSIGN(const Driver* driver, load_driver());
  PLIMSOLL_ASSIGN(const int device, device_of(*driver, ordinal));
  return describe_card(*driver, device);
}

int num_cards() {
  const auto driver = load_driver();
  int count = 0;
  return driver && started(**driver) && (*driver)->device_count(&count) == 0 ? count : 0;
}

}  // namespace plimsoll::cuda
