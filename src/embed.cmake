# SPDX-License-Identifier: Apache-2.0
# embed.cmake - files as constants of C
#
#	cmake -DOUT=x.c -DHEADER=x.h "-DFILES=a.py;b.js" -P embed.cmake
#
# driver.py becomes driver_py[] and driver_py_len, which the header declares.
file(WRITE ${OUT} "/* made by embed.cmake */\n#include \"${HEADER}\"\n")
foreach(file ${FILES})
	get_filename_component(name ${file} NAME)
	string(REPLACE "." "_" name ${name})
	file(READ ${file} hex HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
	file(APPEND ${OUT} "const char ${name}[] = { ${bytes} };\n"
		"const size_t ${name}_len = sizeof(${name});\n")
endforeach()
