// SPDX-License-Identifier: Apache-2.0
// Ranks as threads: runs a function on every rank of a layout. Each rank has a device, a stream, communicators through
// comm-local or another backend, loaded kernel sets, and memory that outlives the transports that read it. The device
// need not be the host; then put(), values() and similar functions access its memory.
//
// Threads: run_ranks() starts one thread per rank and joins them all; a Rank is used by its own thread. Ownership: a
// Rank owns what it hands out until its function has returned. Blocking: run_ranks() blocks. A rank that throws aborts
// its groups and interrupts the others, so no rank waits for it; run_ranks() rethrows the first error. For programs
// built with triax_add_test; name the plugins' targets under DEPENDS.
#pragma once

#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/abort_flag.hpp"
#include "control/local_store.hpp"
#include "plugin/loader.hpp"
#include "plugin/option_text.hpp"
#include "support/installation.hpp"
#include "triax/communicator.hpp"
#include "triax/device.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"

namespace triax::test {

/// The backend of the ranks' communicators; options that are not in `options` have their defaults.
struct Communication {
  std::string plugin = "comm-local"; // name, or file
  Options options;
  /// Create a rank's device and backend, if these are not the host device and a loaded plugin. Called on the rank's
  /// thread.
  std::function<std::unique_ptr<Device>(int rank)> device = {};
  std::function<std::unique_ptr<CommBackend>(const PluginContext& context)> backend = {};
  Log* log = &null_log(); // of all plugins
  /// Called when all ranks have ended.
  std::function<void()> after = {};
};

class Rank final : public control::JobAbort::Listener {
 public:
  Rank(int index, const Layout& layout, Store& store, Communication communication = {})
      : index_(index),
        layout_(layout),
        store_(store),
        communication_(std::move(communication)),
        device_(communication_.device ? communication_.device(index) : make_host_device()),
        setup_(device_->make_stream("setup")),
        stream_(device_->make_stream("main")) {}

  int index() const { return index_; }
  const Layout& layout() const { return layout_; }
  Store& store() { return store_; }
  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }
  /// Long enough for a loaded machine; a test that reaches it has failed.
  static Deadline deadline() { return deadline_in(60); }
  void wait(const Work& work) { device().wait(work, deadline()); }

  /// Zero-filled memory that lives until the communicators are destroyed.
  TensorView tensor(DType dtype, const Shape& shape) {
    const TensorView sized(nullptr, dtype, shape);
    memory_.push_back(device().allocate(sized.bytes() + 1, MemoryKind::device)); // + 1: never null
    void* const data = memory_.back()->data();
    const auto bytes = static_cast<std::int64_t>(memory_.back()->bytes());
    if (on_host()) {
      std::memset(data, 0, static_cast<std::size_t>(bytes));
    } else {
      device().fill({data, DType::u8, {bytes}}, 0, *setup_);
      set_up();
    }
    return {data, dtype, shape};
  }
  /// The same, with values.
  template <class T>
  TensorView tensor(DType dtype, const Shape& shape, const std::vector<T>& values) {
    const TensorView view = tensor(dtype, shape);
    put(view, values);
    return view;
  }

  bool on_host() const { return device_->kind() == DeviceKind::host; }
  /// Writes the elements of a contiguous view at once, whatever the main stream waits for.
  void write(const TensorView& view, const void* values) {
    if (view.bytes() == 0) return;
    if (on_host()) {
      std::memcpy(view.data(), values, view.bytes());
      return;
    }
    const std::unique_ptr<Memory> pinned = device().allocate(view.bytes(), MemoryKind::pinned);
    std::memcpy(pinned->data(), values, view.bytes());
    device().upload(view.flat(), {pinned->data(), view.dtype(), {view.elements()}}, *setup_);
    set_up();
  }
  template <class T>
  void put(const TensorView& view, const std::vector<T>& values) {
    TRIAX_REQUIRE(view.bytes() == values.size() * sizeof(T), "{} values for {}", values.size(), to_text(view));
    write(view, values.data());
  }
  /// The elements of a contiguous view, after the main stream has completed.
  template <class T>
  std::vector<T> values(const TensorView& view) {
    std::vector<T> out(view.bytes() / sizeof(T));
    if (out.empty()) return out;
    if (on_host()) {
      std::memcpy(out.data(), view.data(), view.bytes());
      return out;
    }
    const std::unique_ptr<Memory> pinned = device().allocate(view.bytes(), MemoryKind::pinned);
    setup_->wait(stream().record());
    device().download({pinned->data(), view.dtype(), {view.elements()}}, view.flat(), *setup_);
    set_up();
    std::memcpy(out.data(), pinned->data(), view.bytes());
    return out;
  }
  std::vector<std::byte> bytes(const TensorView& view) { return values<std::byte>(view); }
  /// Waits for the work on the main stream. On the host, work is complete when its call returns.
  void finish() {
    if (!on_host()) device().wait(stream().record(), deadline());
  }

  /// Joins a group through the backend, and returns when all members have joined, so that a member that leaves at once
  /// does not disturb one that is still joining.
  Communicator& join(const Group& group) {
    std::unique_ptr<Communicator> joined = backend().join(group, store_, deadline());
    const std::string key = text("have joined {}, {}", group.id, ++joined_[group.id]);
    const Deadline give_up = deadline();
    for (std::int64_t there = store_.add(key, 1); there < group.size(); there = store_.add(key, 0)) {
      TRIAX_REQUIRE(Clock::now() < give_up, "{} of {} members have joined {}", there, group.size(), group.id);
      device().abort_flag().check();
      if (!device().progress()) std::this_thread::yield();
    }
    const std::lock_guard lock(mutex_);
    communicators_.push_back(std::move(joined));
    if (device().abort_flag().raised()) communicators_.back()->abort(device().abort_flag().reason());
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
    if (own_backend_) return *own_backend_;
    if (communication_.backend) {
      own_backend_ = communication_.backend({communication_.options, *communication_.log, layout_, index_, 1});
      own_backend_->start(device());
      return *own_backend_;
    }
    if (!backend_) {
      backend_ = make<CommBackend>(communication_.plugin, communication_.options);
      (*backend_)->start(device());
    }
    return **backend_;
  }
  /// A kernel set on this rank's device, such as "kernels-reference".
  KernelSet& kernels(const std::string& name) {
    kernels_.push_back(make<KernelSet>(name));
    kernels_.back()->start(device());
    return *kernels_.back();
  }

  /// Any thread. Ends this rank's waits and its groups.
  void abort(std::string_view why) noexcept override {
    device().abort_flag().raise(why);
    const std::lock_guard lock(mutex_);
    for (const auto& communicator : communicators_) communicator->abort(why);
  }

 private:
  /// Waits even if the rank has been interrupted.
  void set_up() {
    const Event done = setup_->record();
    const Deadline give_up = deadline();
    while (!done.fired()) {
      TRIAX_REQUIRE(Clock::now() < give_up, "memory of rank {} was not set up", index_);
      if (!device().progress()) std::this_thread::yield();
    }
  }

  template <class Interface>
  plugin::Instance<Interface> make(const std::string& name, const Options& given = {}) {
    const std::filesystem::path file = name;
    const plugin::Library& library =
        plugin::load(file.is_absolute() ? file : test::plugin_file(name), Interface::kKind);
    options_.push_back(std::make_unique<Options>(given));
    for (const triax_option& option : library.options) {
      if (options_.back()->has(option.name) || !option.default_value) continue;
      options_.back()->set(option.name, plugin::parse_option(option, option.default_value));
    }
    return plugin::create<Interface>(library, {*options_.back(), *communication_.log, layout_, index_, 1});
  }

  int index_;
  const Layout& layout_;
  Store& store_;
  const Communication communication_;
  std::vector<std::unique_ptr<Options>> options_; // of the plugins
  std::map<std::string, int> joined_;             // number of joins, by group
  // Destroyed in reverse order: transports, streams, then what they refer to.
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<plugin::Instance<KernelSet>> kernels_;
  std::unique_ptr<Stream> setup_, stream_; // setup_ does not wait for a test's work
  std::optional<plugin::Instance<CommBackend>> backend_;
  std::unique_ptr<CommBackend> own_backend_;
  std::mutex mutex_; // guards communicators_, which abort() reads
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

/// The running ranks of one world, and the first error.
class World {
 public:
  World(const Layout& layout, Communication communication)
      : layout_(layout), communication_(std::move(communication)) {}

  void run(int index, const std::function<void(Rank&)>& body) noexcept {
    std::optional<Rank> rank; // destroyed after its failure is reported: others see that first
    std::optional<control::JobAbort::Listening> listening;
    try {
      rank.emplace(index, layout_, store_, communication_);
      listening.emplace(abort_, *rank);
      body(*rank);
    } catch (const std::exception& error) {
      if (abort_.raise(index, error.what())) first_ = std::current_exception();
    } catch (...) {
      if (abort_.raise(index, "an unknown exception (not derived from std::exception)"))
        first_ = std::current_exception();
    }
  }

  void rethrow() {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  const Layout& layout_;
  const Communication communication_;
  control::JobAbort abort_;
  control::LocalStore store_;
  const control::JobAbort::Listening store_listens_{abort_, store_};
  std::exception_ptr first_; // written by the rank that raised the flag
};

/// Runs `body` on every rank of the layout; rethrows the first error.
inline void run_ranks(const Layout& layout, const std::function<void(Rank&)>& body,
                      const Communication& communication = {}) {
  World world(layout, communication);
  std::vector<std::thread> threads;
  for (int index = 0; index < layout.world(); ++index) {
    threads.emplace_back([&, index] { world.run(index, body); });
  }
  for (std::thread& thread : threads) thread.join();
  if (communication.after) communication.after();
  world.rethrow();
}

/// The same for `count` ranks in one tensor group.
inline void run_ranks(int count, const std::function<void(Rank&)>& body, const Communication& communication = {}) {
  run_ranks(Layout::ptd(1, count, 1), body, communication);
}

} // namespace triax::test
