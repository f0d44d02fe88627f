#include "backends/cuda/product_tuning.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

namespace plimsoll::cuda {
namespace {

constexpr int kProposals = 8, kTimes = 5;
/// By how much another algorithm must be quicker: what two runs of one differ by is less.
constexpr double kQuicker = 0.98;
/// Of random operands, which then repeat.
constexpr size_t kRandomBytes = size_t{1} << 20;

Status checked(const Driver& driver, int error, const char* what) {
  if (error == 0) return Ok{};
  return Error{ErrorCode::kIo, error_text(driver, error), what, "close what else uses the card's memory"};
}

/// Memory of the card, given back with the object.
class CardMemory {
 public:
  explicit CardMemory(const Driver& driver) : driver_(driver) {}
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;
  ~CardMemory() {
    for (const DevicePointer at : taken_) driver_.memory_free(at);
  }
  /// Random numbers between 2^-7 and 2 of either sign, as bf16 or f16 as well as f32.
  Result<void*> random(int64_t bytes, Handle stream) {
    DevicePointer at = 0;
    const size_t size = static_cast<size_t>(bytes) + kRandomBytes;
    PLIMSOLL_TRY(checked(driver_, driver_.memory_allocate(&at, size), "memory to try products in"));
    taken_.push_back(at);
    if (words_.empty()) {
      words_.resize(kRandomBytes / sizeof(uint64_t));
      uint64_t state = 0x9E3779B97F4A7C15;
      for (uint64_t& word : words_) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        word = (state & 0x83ff83ff83ff83ff) | 0x3c003c003c003c00;
      }
    }
    for (size_t done = 0; done + kRandomBytes <= size; done += kRandomBytes)
      PLIMSOLL_TRY(checked(
          driver_,
          driver_.copy(at + done, reinterpret_cast<DevicePointer>(words_.data()), kRandomBytes, stream),
          "filling memory"));
    PLIMSOLL_TRY(checked(driver_, driver_.stream_synchronize(stream), "filling memory"));
    return reinterpret_cast<void*>(at);
  }

 private:
  const Driver& driver_;
  std::vector<DevicePointer> taken_;
  std::vector<uint64_t> words_;
};

int64_t stored_bytes(int64_t rows, int64_t columns, int64_t pitch, ir::DType dtype) {
  return rows * (pitch == 0 ? columns : pitch) * ir::bits(dtype) / 8;
}

/// The product with operands of its own.
Result<Product> placed(Product p, CardMemory& memory, Handle stream) {
  const int64_t a_rows = p.a_transposed ? p.k : p.m, a_columns = p.a_transposed ? p.m : p.k;
  const int64_t b_rows = p.b_transposed ? p.n : p.k, b_columns = p.b_transposed ? p.k : p.n;
  PLIMSOLL_ASSIGN(p.a, memory.random(stored_bytes(a_rows, a_columns, p.lda, p.in), stream));
  PLIMSOLL_ASSIGN(p.b, memory.random(stored_bytes(b_rows, b_columns, p.ldb, p.in), stream));
  PLIMSOLL_ASSIGN(p.d, memory.random(stored_bytes(p.m, p.n, p.ldd, p.out), stream));
  if (p.bias != nullptr) {
    PLIMSOLL_ASSIGN(p.bias, memory.random(stored_bytes(1, p.n, 0, p.out), stream));
  }
  if (p.sums != nullptr) {
    PLIMSOLL_ASSIGN(p.sums, memory.random(stored_bytes(1, p.sums_of_b ? p.n : p.m, 0, p.out), stream));
  }
  if (p.factor != nullptr) {
    PLIMSOLL_ASSIGN(void* const factor, memory.random(2 * sizeof(float), stream));
    p.factor = static_cast<const float*>(factor);
  }
  if (p.workspace != nullptr) {
    PLIMSOLL_ASSIGN(p.workspace, memory.random(kProductWorkspace, stream));
  }
  return p;
}

/// Two events with timing.
class Clock {
 public:
  explicit Clock(const Driver& driver) : driver_(driver) {
    for (Handle& event : events_)
      if (error_ == 0) error_ = driver_.event_create(&event, kWithTiming);
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() {
    for (const Handle event : events_)
      if (event != nullptr) driver_.event_destroy(event);
  }
  /// Of a few runs behind one that does not count. Nothing where the library fails at it.
  std::optional<float> milliseconds(const Product& product, Products& products, Handle stream) {
    if (error_ != 0 || !products.multiply(product, stream)) return std::nullopt;
    error_ = driver_.event_record(events_[0], stream);
    for (int i = 0; i < kTimes; ++i)
      if (!products.multiply(product, stream)) return std::nullopt;
    float took = 0;
    if (error_ == 0) error_ = driver_.event_record(events_[1], stream);
    if (error_ == 0) error_ = driver_.stream_synchronize(stream);
    if (error_ == 0) error_ = driver_.event_elapsed(&took, events_[0], events_[1]);
    return error_ == 0 ? std::optional(took) : std::nullopt;
  }
  [[nodiscard]] int error() const { return error_; }

 private:
  const Driver& driver_;
  std::array<Handle, 2> events_{};
  int error_ = 0;
};

/// Nothing where the library's favourite is to be kept.
Result<std::optional<Algorithm>> fastest(const Driver& driver, Products& products, const Product& wanted,
                                         Handle stream) {
  CardMemory memory(driver);
  PLIMSOLL_ASSIGN(const Product product, placed(wanted, memory, stream));
  const std::vector<Algorithm> proposals = products.proposals(product, kProposals);
  if (proposals.size() < 2) return std::optional<Algorithm>();
  Clock clock(driver);
  size_t best = 0;
  float least = 0;
  for (size_t i = 0; i < proposals.size(); ++i) {
    if (!products.take(product, proposals[i])) continue;
    const std::optional<float> took = clock.milliseconds(product, products, stream);
    PLIMSOLL_TRY(checked(driver, clock.error(), "timing products"));
    if (!took || (least > 0 && *took >= static_cast<float>(kQuicker) * least)) continue;
    least = *took, best = i;
  }
  if (!products.take(product, proposals[best]) || best == 0) return std::optional<Algorithm>();
  return std::optional(proposals[best]);
}

}  // namespace

Result<ProductChoices> tune_products(const Driver& driver, const Blas& blas, Products& products,
                                     std::span<const Product> wanted, Handle stream) {
  ProductChoices choices{.library_version = static_cast<int64_t>(blas.version())};
  for (const Product& product : wanted) {
    if (product.a_codes || product.b_codes) continue;
    PLIMSOLL_ASSIGN(const auto algorithm, fastest(driver, products, product, stream));
    if (algorithm) choices.by_form[Products::form_text(product)] = *algorithm;
  }
  return choices;
}

}  // namespace plimsoll::cuda
