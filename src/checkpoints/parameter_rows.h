// Rows of a checkpoint's tensor in the session that holds it, as numbers, whatever it is kept in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/shape.h"
#include "models/model.h"

namespace plimsoll::runtime {
class Communicator;
class Session;
}  // namespace plimsoll::runtime

namespace plimsoll::checkpoints {

/// A tensor as rows of a state.
struct ParameterPlace {
  std::string state;
  int64_t row = 0, rows = 0, columns = 0;
  ir::TensorType type = {};  ///< of the state
};

/// Of the model's view of that name. Errors: kInvalidArgument where it is kept in other than f32, bf16, f16
/// or few bits.
Result<ParameterPlace> place_of(const models::Model& model, const runtime::Session& session,
                                std::string_view view);

/// Reads a place's rows; of one in few bits the codes and scales are read at once, and held. So is all of a
/// state that ranks share, which `ranks` open at the same place: null, where this rank has all states.
class ParameterRows {
 public:
  static Result<ParameterRows> open(const runtime::Session& session, ParameterPlace place,
                                    runtime::Communicator* ranks = nullptr);
  [[nodiscard]] Result<std::vector<float>> read(int64_t first, int64_t count) const;
  [[nodiscard]] const ParameterPlace& place() const { return place_; }

 private:
  ParameterRows(const runtime::Session& session, ParameterPlace place)
      : session_(&session), place_(std::move(place)) {}
  const runtime::Session* session_;
  ParameterPlace place_;
  std::vector<std::byte> storage_ = {};
};

/// All rows. Errors: those of place_of; of the device, of the communicator.
Result<std::vector<float>> read_parameter_rows(const models::Model& model, const runtime::Session& session,
                                               std::string_view view, runtime::Communicator* ranks = nullptr);
/// Rows from `first` on, each element rounded once; not of a place in few bits (checked).
Status write_parameter_rows(runtime::Session& session, const ParameterPlace& place, int64_t first,
                            const std::vector<float>& values);
Status write_parameter_rows(const models::Model& model, runtime::Session& session, std::string_view view,
                            const std::vector<float>& values);

}  // namespace plimsoll::checkpoints
