# SPDX-License-Identifier: Apache-2.0
# Doxygen reads the comments of the headers as they are written: at the head of a file, and after a declaration.
1s,^// SPDX.*,/// @file,
2,/^#/s,^//\( \|$\),///\1,
1s,^/\* SPDX.*,,
2s,^/\* ,/** @file\n * ,
s,^/\* ,/** ,
# Not the end of a namespace, not a line of the preprocessor, not a comment that has a line alone.
/^ *\(} *\/\/\|\/\/\|#[^d]\)/!s,^\([^/]*[^/ ]\)  *// \(.*\),\1 ///< \2,
/^ *\(\/\*\|#[^d]\)/!s,^\([^/]*[^/ ]\)  */\* \(.*\),\1 /**< \2,
# The second line of a comment after a declaration.
s,^\( \{16\,\}\)// ,\1///< ,
# The contract at the end of a header becomes a part of the comment of the file.
/^\/\/ Contract$/,$s,^//\( \|$\),///\1,
s,^/// Contract$,/// @file\n/// @par Contract,
s,^/// \[\([A-Z][0-9]*\)\],///\n/// **[\1]**,
# Doxygen joins the line after a macro without a semicolon to it, and would not see #undef there.
s,^ *TRIAX_[A-Z]*(TRIAX_OP[A-Z_]*)$,&\n,
