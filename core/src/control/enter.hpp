// SPDX-License-Identifier: Apache-2.0
// How a rank comes to its server: it connects, shows the token and is let in.
//
// Threads: any. Ownership: returns a value. Blocking: until the deadline in the request, plus what resolving a name
// takes. Errors: Error naming the server's address and the reason; the flag's reason once that is raised.
#pragma once

#include "control/client.hpp"
#include "control/connection.hpp"

namespace triax::control {

/// Tries until the deadline: the server may come later, and it may drop who comes in a crowd.
Connection enter(const ClientRequest& request, const AbortFlag& flag);

} // namespace triax::control
