import './app.css';
import './first.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { EmbeddedSource } from './data/source';
import ServedApp from './serve/ServedApp.svelte';
import { router } from './serve/route.svelte';
import { choices } from './state/choices.svelte';

const target = document.getElementById('pgdyno-app');
if (target) {
  choices.follow();
  // A server writes this element in the place of data.
  if (document.getElementById('pgdyno-server')) {
    router.follow();
    mount(ServedApp, { target });
  } else {
    mount(App, { target, props: { source: new EmbeddedSource(document) } });
  }
}
