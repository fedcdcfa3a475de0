// SPDX-License-Identifier: Apache-2.0
// Optional interfaces: what a device, backend, communicator, kernel set, model, layer, optimizer, scheduler or planner
// may offer besides its class. Triax adds features this way, so that plugins without them stay valid.
//
// An optional interface is a class with a name:
//
//   class Recorder { public: static constexpr std::string_view kExtension = "triax.recorder"; ... };
//
// An object that has it returns it by that name, as a pointer to exactly this class:
//
//   void* extension(std::string_view id) noexcept override {
//     return id == Recorder::kExtension ? static_cast<Recorder*>(this) : nullptr;
//   }
//
// A user of the object asks for it:
//
//   if (auto* recorder = find_extension<Recorder>(device)) recorder->begin_recording(stream);
//
// Threads: the object's. Ownership: the object owns its optional interfaces. Blocking: never. Errors: none.
#pragma once

#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// Base of the classes whose objects may have optional interfaces.
class TRIAX_API Extensible {
 public:
  /// The optional interface named `id`; null if the object does not have it. The default has none.
  virtual void* extension(std::string_view id) noexcept;

 protected:
  ~Extensible() = default;
};

/// The optional interface of `object`, or null if it has none.
template <class Interface>
Interface* find_extension(Extensible& object) noexcept {
  return static_cast<Interface*>(object.extension(Interface::kExtension));
}

} // namespace triax
