// Ranks as threads: runs a function on every rank of a layout, each with a device, a stream, communicators through
// comm-local, kernel sets through their doors, and memory that outlives the transports that read it.
//
// Threads: run_ranks() starts one thread a rank and joins them all; a Rank is used by its own thread. Ownership: a Rank
// owns what it hands out until its function has returned. Blocking: run_ranks() blocks; a rank that throws aborts its
// groups and interrupts the others, so nobody waits for it, and the first error is thrown again. For programs made by
// triax_add_test; name the plugins' targets under DEPENDS.
#pragma once

#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/local_store.hpp"
#include "plugin/loader.hpp"
#include "triax/communicator.hpp"
#include "triax/device.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"

namespace triax::testing {

class Rank {
 public:
  Rank(int index, const Layout& layout, Store& store)
      : index_(index), layout_(layout), store_(store), stream_(device_->make_stream("main")) {}

  int index() const { return index_; }
  const Layout& layout() const { return layout_; }
  Store& store() { return store_; }
  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }
  /// Long enough for a loaded machine; a test that gets there has failed.
  static Deadline deadline() { return deadline_in(60); }
  void wait(const Work& work) { device().wait(work, deadline()); }

  /// Zero-filled memory that lives until the communicators have gone.
  TensorView tensor(DType dtype, const Shape& shape) {
    const TensorView sized(nullptr, dtype, shape);
    memory_.push_back(device().allocate(sized.bytes() + 1, MemoryKind::device)); // + 1: never null
    std::memset(memory_.back()->data(), 0, memory_.back()->bytes());
    return {memory_.back()->data(), dtype, shape};
  }
  /// The same, with values.
  template <class T>
  TensorView tensor(DType dtype, const Shape& shape, const std::vector<T>& values) {
    const TensorView view = tensor(dtype, shape);
    TRIAX_REQUIRE(view.bytes() == values.size() * sizeof(T), "{} values for {}", values.size(), to_text(view));
    if (!values.empty()) std::memcpy(view.data(), values.data(), view.bytes());
    return view;
  }

  /// Joins a group through comm-local.
  Communicator& join(const Group& group) {
    communicators_.push_back(backend().join(group, store_, deadline()));
    return *communicators_.back();
  }
  Communicator& join(std::string_view axis) { return join(layout_.group(index_, axis)); }
  Communicator& join_world() { return join(layout_.world_group(index_)); }
  /// This rank's communicators of all axes longer than 1.
  Groups join_axes() {
    Groups groups;
    for (const Axis& axis : layout_.axes()) {
      if (axis.size > 1) groups.set(axis.name, &join(axis.name));
    }
    return groups;
  }

  CommBackend& backend() {
    if (!backend_) {
      backend_ = make<CommBackend>("comm-local");
      (*backend_)->start(device());
    }
    return **backend_;
  }
  /// A kernel set on this rank's device: "kernels-reference".
  KernelSet& kernels(const std::string& name) {
    kernels_.push_back(make<KernelSet>(name));
    kernels_.back()->start(device());
    return *kernels_.back();
  }

  void abort(std::string_view why) noexcept {
    for (const auto& communicator : communicators_) communicator->abort(why);
  }

 private:
  template <class Interface>
  plugin::Instance<Interface> make(const std::string& name) {
    const std::filesystem::path file = std::filesystem::path(TRIAX_BINARY_DIR) / "lib/triax/plugins" / (name + ".so");
    return plugin::create<Interface>(plugin::load(file, Interface::kKind), {options_, null_log(), layout_, index_, 1});
  }

  int index_;
  const Layout& layout_;
  Store& store_;
  Options options_;
  // Destroyed from the last to the first: transports, streams, then what they refer to.
  std::unique_ptr<Device> device_ = make_host_device();
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<plugin::Instance<KernelSet>> kernels_;
  std::unique_ptr<Stream> stream_;
  std::optional<plugin::Instance<CommBackend>> backend_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

/// The running ranks of one world, and the first error among them.
class World {
 public:
  explicit World(const Layout& layout) : layout_(layout) {}

  void run(int index, const std::function<void(Rank&)>& body) noexcept {
    try {
      Rank rank(index, layout_, store_);
      const Registered here(*this, rank.device());
      try {
        body(rank);
      } catch (const std::exception& error) {
        keep_first(std::current_exception());
        rank.abort(error.what());
        interrupt_all(text("rank {} failed: {}", index, error.what()));
      }
    } catch (...) {
      keep_first(std::current_exception());
      interrupt_all(text("rank {} failed", index));
    }
  }

  void rethrow() {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  struct Registered {
    Registered(World& world, Device& device) : world_(world), device_(device) {
      const std::lock_guard lock(world_.mutex_);
      world_.running_.insert(&device_);
      if (world_.first_) device_.interrupt().raise("another rank failed before this one began");
    }
    ~Registered() {
      const std::lock_guard lock(world_.mutex_);
      world_.running_.erase(&device_);
    }
    World& world_;
    Device& device_;
  };

  void keep_first(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(error);
  }
  void interrupt_all(const std::string& why) {
    const std::lock_guard lock(mutex_);
    for (Device* device : running_) device->interrupt().raise(why);
  }

  const Layout& layout_;
  control::LocalStore store_;
  std::mutex mutex_; // of what follows
  std::set<Device*> running_;
  std::exception_ptr first_;
};

/// Runs `body` on every rank of the layout; throws the first error again.
inline void run_ranks(const Layout& layout, const std::function<void(Rank&)>& body) {
  World world(layout);
  std::vector<std::thread> threads;
  for (int index = 0; index < layout.world(); ++index) {
    threads.emplace_back([&, index] { world.run(index, body); });
  }
  for (std::thread& thread : threads) thread.join();
  world.rethrow();
}

/// A world of `count` ranks in one tensor group.
inline void run_ranks(int count, const std::function<void(Rank&)>& body) {
  run_ranks(Layout::ptd(1, count, 1), body);
}

} // namespace triax::testing
