// A power that a device may have: to be told when what comes on its streams may be there for the first time.
//
// Loading a kernel, which happens when it is launched first, may wait for all that runs on the GPU (CUDA C++
// programming guide, "Lazy loading"). What runs may be waiting for the host, which is launching: neither would go on. A
// device that hears of it lets no stream wait for the host meanwhile, and pumps instead.
//
//   if (auto* told = dynamic_cast<FirstUse*>(&device)) told->first_use(true);
//
// Threads: the rank's main thread. Ownership: none. Blocking: never. Errors: none.
#pragma once

#include "triax/export.hpp"

namespace triax {

class TRIAX_API FirstUse {
 public:
  virtual ~FirstUse();
  /// From now on, until it is told otherwise. At the start: false.
  virtual void first_use(bool may_be) noexcept = 0;
};

} // namespace triax
