// Connects the ranks of a job: rank 0 listens, the others connect. On one machine that is a socket of the
// machine by the job's name, which no other user's process and no other machine can reach and which leaves no
// file; with an address, TCP on the interface that it names.
#pragma once

#include "ranks/launch.h"
#include "ranks/message.h"

namespace plimsoll::ranks {

/// Listens for the others. Errors: kIo; kInvalidArgument for an address that is none.
Result<Connection> listen_for_ranks(const Launch& launch);
/// The next rank that connects, within so many seconds; nothing where none does. Errors: kIo.
Result<std::optional<Connection>> accept_rank(const Connection& listener, double seconds);
/// Connects to rank 0, trying until it listens, for so many seconds. Errors: kIo.
Result<Connection> connect_to_first(const Launch& launch, double seconds);

}  // namespace plimsoll::ranks
