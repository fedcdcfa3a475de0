// SPDX-License-Identifier: Apache-2.0
// Connects and authenticates a rank to the job server.
//
// Threads: any. Blocking: until the request's deadline, plus the time of name resolution. Errors: Error with the
// server's address and the reason; the flag's reason once the flag is set.
#pragma once

#include "control/client.hpp"
#include "control/connection.hpp"

namespace triax::control {

/// Retries until the deadline: the server may start later, and may drop connections under load.
Connection enter(const ClientRequest& request, const JobAbort& flag);

} // namespace triax::control
