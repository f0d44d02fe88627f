#include "ranks/channel_transport.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ranks/group.h"
#include "ranks/pieces.h"

namespace plimsoll::ranks {
namespace {

/// Of what rank 0 holds of all ranks at once.
constexpr int64_t kBytesAtOnce = int64_t{1} << 20, kLeastBytes = 64;

int64_t bytes_at_once(int64_t texts) { return std::max(kLeastBytes, kBytesAtOnce / texts); }

void append(std::string& text, std::span<const std::byte> bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// As much of the text as there is place for.
void copy(std::string_view text, std::span<std::byte> place) {
  std::ranges::copy(std::as_bytes(std::span(text)).first(std::min(text.size(), place.size())), place.begin());
}

}  // namespace

int ChannelTransport::rank() const { return group_.rank(); }
int ChannelTransport::ranks() const { return group_.ranks(); }

/// The same part of every piece.
struct ChannelTransport::Round {
  std::span<const std::byte> own;
  int64_t piece_bytes = 0, at = 0, bytes = 0;

  [[nodiscard]] std::span<const std::byte> to(int64_t rank) const {
    return part(part(own, rank * piece_bytes, piece_bytes), at, bytes);
  }
  /// Of what each rank sends.
  [[nodiscard]] size_t all_bytes(int ranks) const {
    size_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += to(rank).size();
    return sum;
  }
};

/// Ranks give alike, so each knows where in a text the part of each begins.
Status ChannelTransport::exchange_part(const Round& round, std::span<std::byte> received) {
  const auto place_of = [&](int from) {
    return part(part(received, from * round.piece_bytes, round.piece_bytes), round.at, round.bytes);
  };
  const size_t first = round.to(0).size(), all = round.all_bytes(ranks()), rest = all - first;
  std::string mine;
  for (int to = 0; to < ranks(); ++to) append(mine, round.to(to));
  PLIMSOLL_ASSIGN(const std::vector<std::string> texts, group_.collect(mine));
  std::string others;
  for (size_t from = 0; from < texts.size(); ++from) {
    const std::string_view text = texts[from];
    copy(text.substr(0, first), place_of(static_cast<int>(from)));
    others += text.substr(std::min(first, text.size()));
  }
  PLIMSOLL_ASSIGN(const std::string shared, group_.share(others));
  if (rank() == 0) return Ok{};
  size_t begin = 0;
  for (int to = 1; to < rank(); ++to) begin += round.to(to).size();
  for (int from = 0; from < ranks(); ++from)
    copy(std::string_view(shared).substr(static_cast<size_t>(from) * rest + begin, round.to(rank()).size()),
         place_of(from));
  return Ok{};
}

Status ChannelTransport::exchange(std::span<const std::byte> own, int64_t piece_bytes,
                                  std::span<std::byte> received) {
  const WaitClock::Wait wait(waits_);
  std::ranges::fill(received, std::byte{0});
  const int64_t pieces =
      std::clamp<int64_t>(ceil_div(std::ssize(own), std::max<int64_t>(1, piece_bytes)), 1, ranks());
  const int64_t most = bytes_at_once(pieces * ranks());
  for (int64_t at = 0; at < std::min(piece_bytes, std::ssize(own)); at += most)
    PLIMSOLL_TRY(exchange_part({own, piece_bytes, at, std::min(most, piece_bytes - at)}, received));
  return Ok{};
}

Status ChannelTransport::gather(std::span<const std::byte> piece, std::span<std::byte> whole) {
  const WaitClock::Wait wait(waits_);
  const int64_t piece_bytes = std::ssize(piece), most = bytes_at_once(ranks());
  for (int64_t at = 0; at < piece_bytes; at += most) {
    std::string mine, all;
    append(mine, part(piece, at, most));
    PLIMSOLL_ASSIGN(const std::vector<std::string> texts, group_.collect(mine));
    for (const std::string& text : texts) all += text;
    PLIMSOLL_ASSIGN(all, group_.share(all));
    for (int from = 0; from < ranks(); ++from)
      copy(std::string_view(all).substr(static_cast<size_t>(from) * mine.size(), mine.size()),
           part(part(whole, from * piece_bytes, piece_bytes), at, std::ssize(mine)));
  }
  return Ok{};
}

}  // namespace plimsoll::ranks
