// Keeps the channels of images last between ops of images.
//
//   conv2d ─► y [N, H, W, C] ─► permute ─► [N, C, H, W]: what the front end has
//                 │                 ┊ (nothing reads it, and it is left out)
//                 └──────► relu ─► z [N, H, W, C] ─► permute ─► …
#include <algorithm>

#include "library/front_ops.h"

namespace plimsoll::library {

using ir::ValueId;

ValueId OpCall::channels_last(ValueId x) const {
  const ValueId known = trace.find_channels_last(x);
  if (known.valid()) return known;
  const ValueId last = b.op("permute", {x}, {{"axes", kToLast}});
  if (last.valid()) trace.note_channels_last(x, last);
  return last;
}

ValueId OpCall::channels_first(ValueId y) const {
  const ValueId first = b.op("permute", {y}, {{"axes", kToFirst}});
  if (first.valid()) trace.note_channels_last(first, y);
  return first;
}

bool OpCall::is_image(ValueId x) const { return trace.find_channels_last(x).valid(); }

std::optional<Values> OpCall::as_images(const Values& operands) const {
  if (std::ranges::none_of(operands, [&](ValueId v) { return is_image(v); })) return {};
  const auto is_number = [&](ValueId v) { return type(v).num_elements() == 1 && type(v).shape.rank() == 1; };
  if (!std::ranges::all_of(operands, [&](ValueId v) { return type(v).shape.rank() == 4 || is_number(v); }))
    return {};
  Values images;
  for (const ValueId v : operands) images.push_back(is_number(v) ? v : channels_last(v));
  return images;
}

}  // namespace plimsoll::library
