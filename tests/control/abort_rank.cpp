// SPDX-License-Identifier: Apache-2.0
// A rank as a process: control-rank PORT RANK WORLD SILENCE_S GRACE_S. It waits for a key that is never set. After an
// abort, it and its abort listener hang.
#include <cstdlib>
#include <string>
#include <thread>

#include "control/client.hpp"
#include "triax/error.hpp"

namespace {

using namespace triax;

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

class Hangs final : public control::JobAbort::Listener {
 public:
  void abort(std::string_view) noexcept override { hang(); }
};

} // namespace

int main(int, char** arguments) {
  control::ClientRequest request;
  request.server = {"127.0.0.1", std::atoi(arguments[1])};
  request.rank = std::atoi(arguments[2]);
  request.world = std::atoi(arguments[3]);
  request.silence_s = std::atof(arguments[4]);
  request.grace_s = std::atof(arguments[5]);
  request.position = [] { return std::string("step 7, 0F3"); };
  control::JobAbort flag;
  control::Client client(request, flag);
  Hangs hangs;
  const control::JobAbort::Listening listening(flag, hangs);
  try {
    client.get("never", Deadline::max());
  } catch (const Error&) {
    hang();
  }
  return 0;
}
