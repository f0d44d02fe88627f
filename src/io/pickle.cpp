#include "io/pickle.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace plimsoll::io {
namespace {

// The opcodes, as Python's pickletools names them.
constexpr char kProto = '\x80', kEmptyDict = '}', kEmptyList = ']', kMark = '(', kSetItems = 'u',
               kAppends = 'e', kBinUnicode = 'X', kBinInt1 = 'K', kBinInt = 'J', kLong1 = '\x8a',
               kNewTrue = '\x88', kNewFalse = '\x89', kTuple2 = '\x86', kStop = '.';

}  // namespace

PickleWriter::PickleWriter(PickleSink sink) : sink_(std::move(sink)) {
  buffer_.reserve(kBufferBytes);
  put(kProto);
  put(2);
}

void PickleWriter::begin_dict() { begin(kEmptyDict, /*is_list=*/false); }
void PickleWriter::begin_list() { begin(kEmptyList, /*is_list=*/true); }

void PickleWriter::begin(char opcode, bool is_list) {
  begin_value();
  put(opcode);
  put(kMark);
  open_.push_back({is_list});
}

void PickleWriter::end() {
  PLIMSOLL_CHECK(!open_.empty(), "nothing is begun");
  put(open_.back().is_list ? kAppends : kSetItems);
  open_.pop_back();
}

void PickleWriter::string(std::string_view utf8) {
  begin_value();
  put(kBinUnicode);
  put_number(static_cast<uint32_t>(utf8.size()));
  for (const char c : utf8) put(c);
}

void PickleWriter::integer(int64_t value) {
  begin_value();
  put_integer(value);
}

void PickleWriter::boolean(bool value) {
  begin_value();
  put(value ? kNewTrue : kNewFalse);
}

void PickleWriter::pair(int64_t first, int64_t second) {
  begin_value();
  put_integer(first);
  put_integer(second);
  put(kTuple2);
}

Status PickleWriter::finish() {
  PLIMSOLL_CHECK(open_.empty(), "something is not ended");
  put(kStop);
  flush();
  return status_;
}

void PickleWriter::begin_value() {
  if (open_.empty() || !open_.back().is_list) return;
  if (open_.back().in_batch++ < kBatch) return;
  put(kAppends);
  put(kMark);
  open_.back().in_batch = 1;
}

void PickleWriter::put(char byte) {
  buffer_ += byte;
  if (buffer_.size() >= kBufferBytes) flush();
}

/// Little-endian, whatever the machine.
template <class T>
void PickleWriter::put_number(T value) {
  for (size_t i = 0; i < sizeof(T); ++i) put(static_cast<char>((value >> (8 * i)) & 0xff));
}

void PickleWriter::put_integer(int64_t value) {
  if (value >= 0 && value < 256) {
    put(kBinInt1);
    put(static_cast<char>(value));
  } else if (value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()) {
    put(kBinInt);
    put_number(static_cast<uint32_t>(value));
  } else {
    put(kLong1);
    put(8);
    put_number(static_cast<uint64_t>(value));
  }
}

void PickleWriter::flush() {
  if (status_) status_ = sink_(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

}  // namespace plimsoll::io
