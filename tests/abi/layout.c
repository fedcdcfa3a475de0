/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the offset of every field of ABI 1.0. Compiled against the frozen header and against today's. */
#ifdef FROZEN
#include "abi_1_0.h"
#else
#include <triax/abi.h>
#endif

#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field " has moved")
#define AT_LEAST(type, size) _Static_assert(sizeof(type) >= (size), #type " has shrunk")

AT(triax_plugin, magic, 0);
AT(triax_plugin, struct_size, 4);
AT(triax_plugin, abi_major, 8);
AT(triax_plugin, abi_minor, 12);
AT(triax_plugin, toolchain, 16);
AT(triax_plugin, kind, 24);
AT(triax_plugin, interface_version, 32);
AT(triax_plugin, reserved, 36);
AT(triax_plugin, name, 40);
AT(triax_plugin, version, 48);
AT(triax_plugin, description, 56);
AT(triax_plugin, options, 64);
AT(triax_plugin, option_count, 72);
AT(triax_plugin, option_size, 80);
AT(triax_plugin, create, 88);
AT(triax_plugin, destroy, 96);
AT_LEAST(triax_plugin, 104);

AT(triax_option, type, 0);
AT(triax_option, reserved, 4);
AT(triax_option, name, 8);
AT(triax_option, default_value, 16);
AT(triax_option, choices, 24);
AT(triax_option, doc, 32);
AT(triax_option, min, 40);
AT(triax_option, max, 48);
AT_LEAST(triax_option, 56);

AT(triax_create_args, struct_size, 0);
AT(triax_create_args, reserved, 4);
AT(triax_create_args, options, 8);
AT(triax_create_args, log, 16);
AT(triax_create_args, layout, 24);
AT(triax_create_args, rank, 32);
AT(triax_create_args, threads, 36);
AT_LEAST(triax_create_args, 40);

AT(triax_error, text, 0);
AT(triax_error, capacity, 8);
AT_LEAST(triax_error, 16);

_Static_assert(TRIAX_ABI_MAGIC == 0x58525431u && TRIAX_ABI_MAJOR == 1, "the ABI itself differs");
_Static_assert(TRIAX_OPTION_BOOL == 1 && TRIAX_OPTION_INT == 2 && TRIAX_OPTION_FLOAT == 3 && TRIAX_OPTION_STRING == 4 &&
                   TRIAX_OPTION_PATH == 5 && TRIAX_OPTION_LIST == 0x100,
               "option types have been renumbered");

/* ISO C requires a declaration in a translation unit. */
const triax_plugin* (*const triax_layout_entry)(void) = triax_plugin_entry_v1;
