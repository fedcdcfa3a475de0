// SPDX-License-Identifier: Apache-2.0
// For the conformance suite: comm-faulty over comm-ucx, on a fake CUDA device, whose memory the host cannot access and
// whose streams wait for host tasks. The environment variable TRIAX_TEST_FAULT names the fault.
#include <cstdlib>
#include <string>

#include "support/communicator_suite.hpp"
#include "support/fake_cuda_device.hpp"

namespace triax::test {

Communication under_test() {
  const char* const fault = std::getenv("TRIAX_TEST_FAULT");
  Communication out{"comm-faulty", {}};
  out.options.set("inner", std::string("comm-ucx"));
  out.options.set("fault", std::string(fault ? fault : "none"));
  out.options.set("delay_ms", 0.5);
  out.device = [](int index) { return make_fake_cuda_device(static_cast<std::uint64_t>(index)); };
  return out;
}

} // namespace triax::test
