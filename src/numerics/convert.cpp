// Arrays in vectors. Each format is a functor from lanes of f32 to codes, with a second operand where it
// rounds by random words; one loop takes them all, as many vectors at a time as give one of codes. Words are
// drawn in chunks that fit the first-level cache. What is written beyond the last-level cache's size goes
// past it, as memcpy does it: otherwise every line would be read before it is written.
#include "numerics/convert.h"

#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/convert.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "hwy/cache_control.h"
#include "numerics/convert-inl.h"
#include "numerics/minifloat-inl.h"
#include "numerics/other_codes-inl.h"
#include "numerics/philox-inl.h"
#include "numerics/pieces.h"
#include "numerics/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
// Random words are drawn so many elements at a time, few so that reading from memory does not pause; more
// where an array does not begin with its block's first word, as each chunk then draws some words twice.
constexpr size_t kChunk = 128, kUnevenChunk = 1024;
// Plain code stores as it stores; the loops are not compiled a second time for it.
constexpr bool kStreams = HWY_TARGET != HWY_SCALAR;

// ---- a format's functor, handed to `run` with a number of the type that its codes are stored in

/// Places by which a code is shifted up: tf32 is held as an f32.
template <class S, class Stored>
inline constexpr int kUp = sizeof(Stored) == 4 ? S::kShift : 0;

template <class S, class Stored, class Run>
HWY_INLINE void with_stochastic_encoder(Stored stored, const EncodeOptions& o, Run run) {
  const F32 d;
  const uint32_t cap = o.saturate ? S::kMax : S::kOverflow;
  run(stored, [=](V v, VU32 word) HWY_ATTR {
    return hn::ShiftLeft<kUp<S, Stored>>(finish_code<S>(d, v, round_stochastic<S>(d, v, word), cap));
  });
}

template <class S, class Stored, class Run>
HWY_INLINE void with_mini_encoder(Stored stored, const EncodeOptions& o, Run run) {
  const F32 d;
  if (o.rounding == Rounding::kStochastic) return with_stochastic_encoder<S>(stored, o, run);
  const uint32_t cap = o.saturate ? S::kMax : S::kOverflow;
  run(stored, [=](V v) HWY_ATTR {
    return hn::ShiftLeft<kUp<S, Stored>>(finish_code<S>(d, v, round_nearest<S>(d, v), cap));
  });
}

/// Of at most a byte.
template <class S, class Stored, class Run>
HWY_INLINE void with_small_encoder(Stored stored, const EncodeOptions& o, Run run) {
  const F32 d;
  if (o.rounding == Rounding::kStochastic) return with_stochastic_encoder<S>(stored, o, run);
  if (o.saturate) return run(stored, [=](V v) HWY_ATTR { return nearest_code<S, true>(d, v); });
  run(stored, [=](V v) HWY_ATTR { return nearest_code<S, false>(d, v); });
}

template <class Run>
HWY_INLINE void with_e8m0_encoder(const EncodeOptions& o, Run run) {
  const F32 d;
  const bool saturate = o.saturate;
  if (o.rounding == Rounding::kStochastic)
    run(uint8_t{}, [=](V v, VU32 word) HWY_ATTR {
      const auto place = e8m0_place(d, v);
      return e8m0_finish(d, v, place.code, carry_of(U32(), place.fraction, word), saturate);
    });
  else if (saturate)
    run(uint8_t{}, [=](V v) HWY_ATTR { return e8m0_nearest<true>(d, v); });
  else
    run(uint8_t{}, [=](V v) HWY_ATTR { return e8m0_nearest<false>(d, v); });
}

template <class Run>
HWY_INLINE void with_int8_encoder(const EncodeOptions& o, Run run) {
  const F32 d;
  if (o.rounding == Rounding::kStochastic)
    run(uint8_t{}, [=](V v, VU32 word) HWY_ATTR { return int8_stochastic(d, v, word); });
  else
    run(uint8_t{}, [=](V v) HWY_ATTR { return int8_nearest(d, v); });
}

// Half way between NF4's neighbours, as the nearest f32.
struct Nf4Thresholds {
  float tree[16];
};
constexpr Nf4Thresholds nf4_thresholds() {
  Nf4Thresholds t{};
  for (int node = 0; node < 16; ++node) {
    const int i = kNf4Tree[node];
    t.tree[node] = static_cast<float>((double{kNf4Values[i]} + double{kNf4Values[i + 1]}) / 2);
  }
  return t;
}

template <class Run>
HWY_INLINE void with_encoder(Format format, const EncodeOptions& o, Run run) {
  alignas(64) static constexpr Nf4Thresholds kThresholds = nf4_thresholds();
  const F32 d;
  const bool stochastic = o.rounding == Rounding::kStochastic;
  const bool plain = !stochastic && !o.saturate, drawn = stochastic && !o.saturate;
  switch (format) {
    case Format::kTf32:
      if (drawn)
        return run(uint32_t{}, [=](V v, VU32 word) HWY_ATTR {
          return hn::BitCast(U32(), round_tf32_stochastic(d, v, word));
        });
      if (!plain) return with_mini_encoder<MiniTf32>(uint32_t{}, o, run);
      return run(uint32_t{}, [=](V v) HWY_ATTR { return hn::BitCast(U32(), round_tf32(d, v)); });
    case Format::kFp16:
      if (!plain) return with_mini_encoder<MiniF16>(uint16_t{}, o, run);
      return run(uint16_t{}, [=](V v) HWY_ATTR { return f16_narrow(d, v); });
    case Format::kBf16:
      if (drawn)
        return run(uint16_t{}, [=](V v, VU32 word) HWY_ATTR { return bf16_bits_stochastic(d, v, word); });
      if (!plain) return with_mini_encoder<MiniBf16>(uint16_t{}, o, run);
      return run(uint16_t{}, [=](V v) HWY_ATTR { return bf16_bits(d, v); });
    case Format::kE4m3:
      return with_small_encoder<MiniE4m3>(uint8_t{}, o, run);
    case Format::kE5m2:
      return with_small_encoder<MiniE5m2>(uint8_t{}, o, run);
    case Format::kE8m0:
      return with_e8m0_encoder(o, run);
    case Format::kE2m1:
      return with_small_encoder<MiniE2m1>(Nibble{}, o, run);
    case Format::kNf4:
      return run(Nibble{}, [coder = Nf4Coder(kThresholds.tree)](V v) HWY_ATTR { return coder(v); });
    case Format::kInt8:
      return with_int8_encoder(o, run);
    case Format::kFp32:
      return run(uint32_t{}, [=](V v) HWY_ATTR { return hn::BitCast(U32(), v); });
  }
}

template <class Run>
HWY_INLINE void with_decoder(Format format, Run run) {
  const F32 d;
  switch (format) {
    case Format::kFp16:
      return run(uint16_t{}, [=](VU32 code) HWY_ATTR { return f16_from_bits(d, code); });
    case Format::kBf16:
      return run(uint16_t{}, [=](VU32 code) HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<16>(code)); });
    case Format::kE4m3:
      return run(uint8_t{}, [=](VU32 code) HWY_ATTR { return from_code<MiniE4m3>(d, code); });
    case Format::kE5m2:
      return run(uint8_t{}, [=](VU32 code) HWY_ATTR { return from_code<MiniE5m2>(d, code); });
    case Format::kE8m0:
      return run(uint8_t{}, [=](VU32 code) HWY_ATTR { return e8m0_from_code(d, code); });
    case Format::kE2m1:
      return run(Nibble{}, [numbers = Sixteen(kE2m1Values)](VU32 code) HWY_ATTR { return numbers(code); });
    case Format::kNf4:
      return run(Nibble{}, [numbers = Sixteen(kNf4Values)](VU32 code) HWY_ATTR { return numbers(code); });
    case Format::kInt8:
      return run(uint8_t{}, [=](VU32 code) HWY_ATTR { return int8_from_code(d, code); });
    case Format::kTf32:
    case Format::kFp32:
      return run(uint32_t{}, [=](VU32 code) HWY_ATTR { return hn::BitCast(d, code); });
  }
}

// ---- chunks, for the random words

template <class Stored, bool kStream, class F>
HWY_INLINE void encode_chunks(const float* x, size_t n, std::byte* to, const EncodeOptions& o, uint64_t first,
                              F f) {
  if constexpr (std::is_invocable_v<F, V>) {
    encode_vectors<Stored, kStream>(x, n, to, [=](V v, size_t) HWY_ATTR { return f(v); });
  } else {
    HWY_ALIGN uint32_t buffer[kUnevenChunk + 4 + 4 * kBlocksAtOnce] = {};  // read up to a vector's end
    const PhiloxKeys keys(o.random.seed);
    const size_t chunk = (o.random.first_element + first) % 4 == 0 ? kChunk : kUnevenChunk;
    for (size_t i = 0; i < n; i += chunk) {
      const size_t count = std::min(chunk, n - i);
      const uint32_t* words = words_of(o.random, keys, first + i, count, buffer);
      encode_vectors<Stored, kStream>(x + i, count, to + i * kStoredBits<Stored> / 8,
                                      [=](V v, size_t at)
                                          HWY_ATTR { return f(v, hn::LoadU(U32(), words + at)); });
    }
  }
}

/// Elements of `bits` bits until `to` is aligned for streaming, n where it never is.
size_t unaligned_elements(const std::byte* to, size_t bits, size_t n) {
  constexpr size_t kAlign = kLanes * sizeof(float);
  const size_t missing = 8 * ((kAlign - reinterpret_cast<uintptr_t>(to) % kAlign) % kAlign);
  return missing % bits != 0 ? n : std::min(n, missing / bits);
}

// Elements `first` to `first` + n of the array.
void encode_piece(Format format, const float* x, int64_t count, std::byte* to, const EncodeOptions& o,
                  uint64_t first, bool stream) {
  const auto n = static_cast<size_t>(count);
  with_encoder(format, o, [=, &o]<class Stored>(Stored, auto f) HWY_ATTR {
    constexpr size_t kBits = kStoredBits<Stored>;
    const size_t head = stream ? unaligned_elements(to, kBits, n) : n;
    encode_chunks<Stored, false>(x, head, to, o, first, f);
    encode_chunks<Stored, kStreams>(x + head, n - head, to + head * kBits / 8, o, first + head, f);
  });
  if (stream) hwy::FlushStream();
}

void decode_piece(Format format, const std::byte* from, int64_t count, float* x, bool stream) {
  const auto n = static_cast<size_t>(count);
  const size_t head = stream ? unaligned_elements(reinterpret_cast<const std::byte*>(x), 32, n) : n;
  with_decoder(format, [=]<class Stored>(Stored, auto number) HWY_ATTR {
    const auto f = [=](VU32 code, size_t) HWY_ATTR { return number(code); };
    if (kStoredBits<Stored> == 4 && head % 2 != 0) return decode_vectors<Stored, false>(from, n, x, f);
    decode_vectors<Stored, false>(from, head, x, f);
    decode_vectors<Stored, kStreams>(from + head * kStoredBits<Stored> / 8, n - head, x + head, f);
  });
  if (stream) hwy::FlushStream();
}

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::numerics {
namespace {

HWY_EXPORT(encode_piece);
HWY_EXPORT(decode_piece);

/// Results from this size on go past the caches.
constexpr int64_t kStreamBytes = int64_t{8} << 20;

/// The byte at which element `at` begins.
int64_t byte_of(Format format, int64_t at) { return at * info(format).stored_bits / 8; }

}  // namespace

int64_t encoded_bytes(Format format, int64_t n) { return (n * info(format).stored_bits + 7) / 8; }

void encode(Format format, std::span<const float> x, std::span<std::byte> codes,
            const EncodeOptions& options) {
  const auto n = static_cast<int64_t>(x.size());
  PLIMSOLL_CHECK(static_cast<int64_t>(codes.size()) == encoded_bytes(format, n), "encode: sizes differ");
  PLIMSOLL_CHECK(format != Format::kNf4 || options.rounding == Rounding::kNearestEven,
                 "encode: NF4 is rounded to nearest");
  const bool stream = static_cast<int64_t>(codes.size()) >= kStreamBytes;
  for_pieces(n, options.num_threads, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(encode_piece)
    (format, x.data() + begin, end - begin, codes.data() + byte_of(format, begin), options,
     static_cast<uint64_t>(begin), stream);
  });
}

void decode(Format format, std::span<const std::byte> codes, std::span<float> x, int num_threads) {
  const auto n = static_cast<int64_t>(x.size());
  PLIMSOLL_CHECK(static_cast<int64_t>(codes.size()) == encoded_bytes(format, n), "decode: sizes differ");
  const bool stream = n * static_cast<int64_t>(sizeof(float)) >= kStreamBytes;
  for_pieces(n, num_threads, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(decode_piece)
    (format, codes.data() + byte_of(format, begin), end - begin, x.data() + begin, stream);
  });
}

}  // namespace plimsoll::numerics
#endif
