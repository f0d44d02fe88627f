// The folder that a session is saved to: whole or as it was before.
//
//   model.safetensors       the parameters by their names
//   optimizer.safetensors   masters, the optimizer's states, the loss scale
//   session.json            steps, seed, the caller's own state, checksums of the others
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "library/own_session.h"

namespace plimsoll::library {

/// `host_state`: JSON of the caller's own; empty: null. Errors: kIo; kInvalidArgument where it is no JSON, or
/// `folder` holds something that no session has saved.
Status save_session(OwnSession& session, const std::string& folder, std::string_view host_state);
/// Goes on from there, bit for bit; returns the caller's own state as JSON. Errors: kIo where there is none,
/// kBadData where it is damaged or another model's; the session is then as before.
Result<std::string> load_session(OwnSession& session, const std::string& folder);

}  // namespace plimsoll::library
