// Serves every method of a descriptor set with connect-es 2.1; see ../server2.mjs.
import * as protobuf from "@bufbuild/protobuf";
import * as wkt from "@bufbuild/protobuf/wkt";
import * as connect from "@connectrpc/connect";
import * as node from "@connectrpc/connect-node";
import { serve } from "../server2.mjs";

serve({ ...protobuf, ...wkt, ...connect, ...node });
