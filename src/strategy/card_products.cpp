#include "strategy/card_products.h"

#include <fmt/format.h>

#include <filesystem>

#include "devices/devices.h"
#include "io/file.h"
#include "strategy/machine_rates.h"
#include "strategy/run_card.h"

namespace plimsoll::strategy {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 20;

std::string kept_by(const settings::RunConfig& config) { return config.output.dir + "/products.txt"; }

/// What calibrate left; empty where it was not called for this card and library.
Result<std::string> calibrated(const settings::RunConfig& config) {
  const auto card = run_card(config);
  if (!card || card->name.empty() || settings::names_profile(config)) return std::string();
  if (!was_card_measured(card->name, "products")) return std::string();
  PLIMSOLL_ASSIGN(const int64_t version, devices::product_library_version());
  const std::string path = card_products_path(card->name, version);
  return io::is_file(path) ? io::read_small_file(path, kMostBytes) : Result<std::string>(std::string());
}

}  // namespace

std::string card_products_path(std::string_view driver_name, int64_t library_version) {
  return card_file(driver_name, "products", fmt::format("{}.txt", library_version));
}

Result<std::string> card_products(const settings::RunConfig& config) {
  if (io::is_file(kept_by(config))) return io::read_small_file(kept_by(config), kMostBytes);
  return calibrated(config);
}

Status keep_card_products(const settings::RunConfig& config) {
  if (!settings::is_for_card(config) || io::is_file(kept_by(config))) return Ok{};
  PLIMSOLL_ASSIGN(const std::string text, calibrated(config));
  if (text.empty()) return Ok{};
  PLIMSOLL_TRY(io::create_writable_directory(config.output.dir));
  return io::write_file_atomically(kept_by(config), text);
}

}  // namespace plimsoll::strategy
