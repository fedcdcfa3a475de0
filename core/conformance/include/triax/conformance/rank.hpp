// SPDX-License-Identifier: Apache-2.0
// One rank of a check: its device, streams, memory, store, and communicators of the backend under test. The device need
// not be the host; then put(), values() and similar functions access its memory.
//
// Threads: the rank's; abort(): any. Ownership: owns what it hands out until the rank ends. Blocking: join(), wait(),
// values(), until deadline(). Errors: Error.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/conformance/report.hpp"
#include "triax/device.hpp"
#include "triax/layout.hpp"
#include "triax/plugin.hpp"

namespace triax::conformance {

/// A plugin's object, with the function that destroys it.
template <class Interface>
using Object = std::unique_ptr<Interface, std::function<void(Interface*)>>;

/// An object of a class of this program.
template <class Interface, class Class>
Object<Interface> own(std::unique_ptr<Class> object) {
  return {object.release(), [](Interface* made) { delete made; }};
}

/// How ranks are created. Functions are called on the rank's thread.
struct RankSetup {
  std::function<Object<CommBackend>(const PluginContext&)> backend; // may be empty, if no check joins a group
  Options options;                                                  // of the backend
  std::function<std::unique_ptr<Device>(int rank)> device;          // empty: the host device
  bool processes = false;                                           // each rank is a process; else a thread
  Log* log = &null_log();                                           // of the backend
  double timeout_s = 30;                                            // of a wait
  std::function<void(int rank)> on_rank_start;                      // first on a rank's thread; may be empty
  std::function<void(Report&)> on_all_ended;                        // when all ranks have ended; may be empty
};

/// One rank of a check.
class Rank {
 public:
  Rank(int index, const Layout& layout, Store& store, const RankSetup& setup, Report& report);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank();

  /// The rank and its objects. on_host(): the host can address the device's memory.
  /// @{
  int index() const { return index_; }
  const Layout& layout() const { return layout_; }
  Store& store() { return store_; }
  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }
  bool on_host() const { return device_->kind() == DeviceKind::host; }
  /// @}
  /// Long enough for a loaded machine; a check that reaches it has failed.
  Deadline deadline() const { return deadline_in(setup_.timeout_s); }
  /// For waits for a rank that may itself wait until deadline().
  Deadline long_deadline() const { return deadline_in(2 * setup_.timeout_s); }
  /// Waits for the work, until deadline().
  void wait(const Work& work) { device().wait(work, deadline()); }
  /// Rounds of the progress loop.
  void progress(int rounds);

  /// Adds a failure of this rank unless `condition` holds.
  template <class... Args>
  void expect(bool condition, std::string_view pattern, const Args&... values) {
    if (!condition) report_.fail(text("rank {}: {}", index_, text(pattern, values...)), index_);
  }
  /// `body` must throw an error that has these parts. Returns the error's text.
  template <class Body>
  std::string expect_error(std::string_view what, const Body& body, std::initializer_list<std::string_view> parts) {
    const std::string error = error_of(body);
    const std::string wrong = missing_part(error, parts);
    expect(wrong.empty(), "{} {}", what, wrong);
    return error;
  }

  /// Zero-filled memory that lives until the communicators are destroyed.
  TensorView tensor(DType dtype, const Shape& shape);
  /// A tensor with these values.
  template <class T>
  TensorView tensor(DType dtype, const Shape& shape, const std::vector<T>& values) {
    const TensorView view = tensor(dtype, shape);
    put(view, values);
    return view;
  }
  /// Writes the elements of a contiguous view at once, whatever the main stream waits for.
  void write(const TensorView& view, const void* values);
  /// Writes all elements, as write() does.
  template <class T>
  void put(const TensorView& view, const std::vector<T>& values) {
    TRIAX_REQUIRE(view.bytes() == values.size() * sizeof(T), "{} values for {}", values.size(), to_text(view));
    write(view, values.data());
  }
  /// Reads the elements of a contiguous view, after the main stream has completed.
  void read(const TensorView& view, void* values);
  /// All elements, as read() gives them.
  template <class T>
  std::vector<T> values(const TensorView& view) {
    std::vector<T> out(view.bytes() / sizeof(T));
    if (!out.empty()) read(view, out.data());
    return out;
  }
  /// The bytes of all elements.
  std::vector<std::byte> bytes(const TensorView& view) { return values<std::byte>(view); }
  /// Waits for the work on the main stream. On the host, work is complete when its call returns.
  void finish();

  /// The backend, created and started by the first call.
  CommBackend& backend();
  /// Joins a group, and returns when all members have joined, so that a member that leaves at once does not disturb one
  /// that is still joining.
  /// @{
  Communicator& join(const Group& group);
  Communicator& join(std::string_view axis) { return join(layout_.group(index_, axis)); }
  Communicator& join_world() { return join(layout_.world_group(index_)); }
  /// @}
  /// Barrier of all ranks of the layout; `name` is in the error of a timeout. Runs the progress loop.
  void barrier(std::string_view name);

  /// Any thread. Ends this rank's waits and its groups.
  void abort(std::string_view why) noexcept;
  /// Kills the process of this rank, which is not a failure. Only for ranks that are processes.
  void kill_process();

 private:
  void set_up();
  /// Pinned memory for one copy at a time.
  void* pinned(std::size_t bytes);
  void await_count(const std::string& key, int count);

  const int index_;
  const Layout& layout_;
  Store& store_;
  const RankSetup& setup_;
  Report& report_;
  AbortFlag abort_flag_;              // set with the device's, which a communicator may set, too
  std::map<std::string, int> counts_; // of joins by group, and of barriers
  // Destroyed in reverse order: transports, streams, then what they refer to.
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Memory>> memory_;
  void* pinned_ = nullptr;
  std::size_t pinned_bytes_ = 0;
  std::unique_ptr<Stream> setup_stream_, stream_; // setup_stream_ does not wait for a check's work
  Object<CommBackend> backend_;
  std::mutex mutex_; // guards communicators_, which abort() reads
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

/// Runs `body` on every rank of a layout, as threads or processes, and returns when all have ended. If one throws, the
/// others are aborted, and its error is the failure that the report gets, because the others' are consequences.
void run_ranks(const RankSetup& setup, const Layout& layout, Report& report, const std::function<void(Rank&)>& body);
/// The same for `count` ranks in one tensor group.
void run_ranks(const RankSetup& setup, int count, Report& report, const std::function<void(Rank&)>& body);

} // namespace triax::conformance
